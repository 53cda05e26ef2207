"""The port `Pods` on Kubernetes.

The name of a Job follows from the attempt's, so that creating it twice makes one machine. Its id contains the
uid that the cluster chose, so that another Job that gets the name later is not taken for it.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.providers.kubernetes import manifests, offers
from prime_train.providers.kubernetes.client import KubernetesClient
from prime_train.providers.kubernetes.errors import Forbidden
from prime_train.providers.kubernetes.manifests import NAME, SELECTOR, Agent
from prime_train.providers.kubernetes.models import KubernetesJob, KubernetesPod, PodSpec, parse_pod_id
from prime_train.providers.kubernetes.offers import KubernetesMachine, Survey
from prime_train.providers.kubernetes.resources import Resources, requested
from prime_train.providers.kubernetes.settings import KubernetesSettings
from prime_train.providers.kubernetes.statuses import place_of_job, pod_of, status_of
from prime_train.providers.rental.account_check import Guard
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import owned
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

SECRET_CHARS = 8
WARNED_MAX = 1_000
OFFER_CHARS_SHOWN = 100

log = logging.getLogger(__name__)


class KubernetesPods:
    """Jobs of one namespace. `agent`: how a container becomes the agent, and `bring_up` the script that
    installs it. `mark` distinguishes this control plane's machines from those of others in the namespace.
    `owner` raises if this is not the namespace in which this control plane's machines are. `closed`: the
    reason why nothing may be rented; empty if renting is allowed.
    """

    def __init__(
        self,
        client: KubernetesClient,
        settings: KubernetesSettings,
        *,
        agent: Callable[[], Agent],
        bring_up: Callable[[], bytes] = lambda: b"",
        mark: PodMark | None = None,
        owner: Guard | None = None,
        closed: str = "",
    ) -> None:
        self._client, self._settings, self._agent, self._bring_up = client, settings, agent, bring_up
        self._mark = mark if mark is not None else PodMark()
        self._owner, self._closed = owner if owner is not None else _anywhere, closed
        self._renting = threading.Lock()
        self._warned: set[tuple[str, str]] = set()

    # --------------------------------------------------------------------------------------------------------
    # the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return the kinds of nodes with enough free GPUs, and the pools that may add nodes."""
        if self._closed:
            raise PermanentError(self._closed)
        return [machine.offer for machine in self._survey().machines(hardware) if machine.slots]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Create a Job at the price of the settings. If there is one with this name, it is the one: an
        earlier call made it.
        """
        if not offers.is_offer_id(offer.offer_id):
            raise PermanentError(
                f"there is no offer {offer.offer_id[:OFFER_CHARS_SHOWN]!r}; ids look like {offers.EXAMPLE_ID}"
            )
        # One after the other, because Kubernetes takes any number of Jobs, and those without a node would
        # wait.
        with self._renting:
            made = self._find(name) or self._create(name, offer, hardware)
        found = pod_of(made, (), self._client.now_s())
        assert found is not None
        return self._named(found)

    def list(self) -> Sequence[Pod]:
        """Return the machines whose names this control plane chose; the namespace may have others. A pod
        whose Job was deleted without it is one of them.
        """
        pods: dict[str, list[KubernetesPod]] = {}
        for pod in self._client.pods(SELECTOR):
            pods.setdefault(pod.job_uid, []).append(pod)
        # After the pods, because a pod without a Job looks as if somebody had deleted its Job.
        jobs = {job.metadata.uid: job for job in self._client.jobs(SELECTOR)}
        now_s = self._client.now_s()
        found = [
            self._seen(jobs.get(uid), pods.get(uid, ()), now_s)
            for uid in (*jobs, *(uid for uid in pods if uid not in jobs))
        ]
        return owned(self._named(pod) for pod in found if pod is not None)

    def get(self, pod_id: str) -> Pod | None:
        """Return the machine, or None if neither its Job nor any of its pods is there."""
        found = self._look(pod_id)
        if found is None:
            return None
        pod = self._seen(*found, self._client.now_s())
        if pod is None:
            # Before None is returned, because in another namespace or cluster every machine would be unknown.
            self._owner()
            return None
        return self._named(pod)

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Create the Secrets that the pod's container waits for. Raises TemporaryError if the pod is gone or
        has no node yet.
        """
        if self._closed:
            raise TemporaryError(self._closed)
        job, pods = self._look(pod.pod_id) or (None, ())
        found = status_of(job, pods, self._client.now_s())
        if job is None or found is None or found[0] is PodStatus.GONE:
            raise TemporaryError(f"pod {pod.pod_id} is gone")
        if found[0] is PodStatus.PENDING:
            raise TemporaryError(f"pod {pod.pod_id} is still booting{f' ({found[1]})' if found[1] else ''}")
        if found[0] is not PodStatus.ACTIVE:
            raise TemporaryError(f"pod {pod.pod_id} is not ready for its agent ({found[1]})")
        living = next(each for each in pods if not each.has_ended)
        agent, secret = self._agent(), job.metadata.annotations.get(manifests.SECRET, "")
        if not secret or job.metadata.annotations.get(manifests.DIGEST, "") != agent.digest:
            raise PermanentError(f"pod {pod.pod_id} was made for another version of the agent")
        script = self._bring_up() if not agent.python else b""
        for manifest in manifests.secrets(job, secret, living.metadata.uid, ticket, agent, script):
            # One that is there already was put by an earlier call.
            self._client.create_secret(manifest)

    def terminate(self, pod_id: str) -> None:
        """Delete the Job, and thereby its pod and Secrets. If it is not there, pods that it left behind are
        deleted, and where there are none, the namespace is checked, because in another one the answer proves
        nothing.
        """
        parsed = parse_pod_id(pod_id)
        if parsed is None or self._client.delete_job(*parsed):
            return
        left = self._pods_of(parsed[1])
        for pod in left:
            self._client.delete_pod(pod.metadata.name, pod.metadata.uid)
        if not left:
            self._owner()

    # --------------------------------------------------------------------------------------------------------
    # inside

    def _create(self, name: str, offer: Offer, hardware: HardwareSpec) -> KubernetesJob:
        if self._closed:
            raise PermanentError(self._closed)
        machine = self._machine(offer.offer_id, hardware)
        self._owner(renting=name)
        marked = self._mark.on(name)
        own = manifests.job_name(marked)
        secret = f"{own}-{secrets.token_hex(SECRET_CHARS // 2)}"
        image = hardware.image or self._settings.image
        manifest = manifests.job(
            marked, self._mark.text, machine, image, self._agent(), secret, self._settings, hardware.volumes
        )
        made = self._client.create_job(manifest, own)
        if made is not None:
            return self._checked(made, name)
        there = self._find(name)
        if there is None:
            raise TemporaryError(f"Job {own} was there, and is not any more")
        return there

    def _find(self, name: str) -> KubernetesJob | None:
        """Return the Job that was made for this name. Raises TemporaryError if somebody else's Job has its
        name: the next attempt has another one.
        """
        found = self._client.job(manifests.job_name(self._mark.on(name)))
        return self._checked(found, name) if found is not None else None

    def _checked(self, job: KubernetesJob, name: str) -> KubernetesJob:
        if job.metadata.annotations.get(NAME) != self._mark.on(name):
            raise TemporaryError(
                f"the Job {job.metadata.name} in {self._client.namespace} does not say that it was made for "
                f"{name}"
            )
        return job

    def _machine(self, offer_id: str, hardware: HardwareSpec) -> KubernetesMachine:
        found = next(
            (
                each
                for each in self._survey().machines(hardware)
                if each.offer.offer_id == offer_id and each.slots
            ),
            None,
        )
        if found is None:
            raise NoCapacity(f"{offer_id} has no room now")
        most_usd = hardware.usd_per_hour_max
        if most_usd is not None and found.offer.usd_per_hour > most_usd:
            usd = found.offer.usd_per_hour
            raise NoCapacity(
                f"{offer_id} now costs ${usd:.2f}/h, above hardware.usd_per_hour_max {most_usd:.2f}"
            )
        return found

    def _survey(self) -> Survey:
        waiting = self._waiting()
        try:
            return offers.survey(
                self._settings, self._client.nodes(), self._client.pods_everywhere(), waiting
            )
        except Forbidden:
            if not self._settings.pools:
                raise
            # A user who may see only a namespace: the settings say what there is outside of it.
            return offers.survey(self._settings, (), (), waiting)

    def _waiting(self) -> Sequence[tuple[str, Resources]]:
        """Return where our own Jobs that have no node yet will need one, and what."""
        placed = {pod.job_uid for pod in self._client.pods(SELECTOR) if pod.spec.nodeName or pod.has_ended}
        jobs = [
            job
            for job in self._client.jobs(SELECTOR)
            if job.metadata.uid not in placed and not job.metadata.is_ending
        ]
        return [
            (place_of_job(job), _requests(job)) for job in jobs if job.condition("Complete", "Failed") is None
        ]

    def _look(self, pod_id: str) -> tuple[KubernetesJob | None, Sequence[KubernetesPod]] | None:
        """Return the Job of this id, if it is there, and its pods; None if nobody gave the id."""
        parsed = parse_pod_id(pod_id)
        if parsed is None:
            return None
        name, uid = parsed
        job = self._client.job(name)
        return (job if job is not None and job.metadata.uid == uid else None), self._pods_of(uid)

    def _pods_of(self, job_uid: str) -> Sequence[KubernetesPod]:
        found = self._client.pods(f"batch.kubernetes.io/controller-uid={job_uid}")
        return [pod for pod in found if pod.job_uid == job_uid]

    def _seen(self, job: KubernetesJob | None, pods: Sequence[KubernetesPod], now_s: float) -> Pod | None:
        pod = pod_of(job, pods, now_s)
        found = status_of(job, pods, now_s)
        if (
            pod is not None
            and found is not None
            and found[1]
            and found[0] in (PodStatus.BROKEN, PodStatus.GONE)
        ):
            # Log the reason once, because the port has no place for it.
            why = found[1]
            if (pod.pod_id, why) not in self._warned and len(self._warned) < WARNED_MAX:
                self._warned.add((pod.pod_id, why))
                log.warning("pod %s: %s", pod.pod_id, why)
        return pod

    def _named(self, pod: Pod) -> Pod:
        """Return the pod with the mark removed from its name; one without this control plane's mark gets an
        empty name.
        """
        return replace(pod, name=self._mark.without(pod.name) or "")


def all_pods(client: KubernetesClient) -> Iterable[Pod]:
    """Return the machines of all control planes in the namespace."""
    pods = client.pods(SELECTOR)
    for job in client.jobs(SELECTOR):
        found = pod_of(job, [pod for pod in pods if pod.job_uid == job.metadata.uid], client.now_s())
        if found is not None:
            yield found


def _requests(job: KubernetesJob) -> Resources:
    spec = job.spec.template.get("spec")
    return requested(PodSpec.model_validate(spec if isinstance(spec, dict) else {}))


def _anywhere(renting: str = "") -> None:
    """Accept any namespace."""

"""The port `Pods` on RunPod.

The create call has no idempotency key. So it is made only once, under a name unique to the attempt, and if its response is lost, that name
shows in the list whether there is a pod. It has no maximum price either: a pod that costs more than its offer is given back at once.

The pod gets this control plane's public SSH key by the variable PUBLIC_KEY, from which RunPod's images start their SSH server, and which
RunPod fills with the account's keys only where it is not set. The list of the account's keys could be replaced only as a whole, so that two
control planes that add theirs at once would each lock the other one out.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from prime_train.adapters.pods_runpod import offers
from prime_train.adapters.pods_runpod.client import CUDA_MIN, RunPodClient, is_pod_id
from prime_train.adapters.pods_runpod.connection import connection_of
from prime_train.adapters.pods_runpod.errors import MaybeOurFault
from prime_train.adapters.pods_runpod.models import GpuType, Rented
from prime_train.adapters.pods_runpod.offers import Machine
from prime_train.adapters.pods_runpod.settings import CLOUDS, TITLE
from prime_train.adapters.pods_runpod.statuses import has_exited, pod_of, usd_per_hour
from prime_train.adapters.rental_api.account_check import Guard
from prime_train.adapters.rental_api.parsing import readable
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.adapters.rental_api.pods import address_of_ready, owned
from prime_train.adapters.rental_api.prices import ceiling_usd
from prime_train.adapters.rental_api.reasons import short
from prime_train.core.image.choice import TEMPLATE, form_of
from prime_train.core.keys import parse_pod_name
from prime_train.core.offers import Offer, rank
from prime_train.core.registry.definitions import ImageForm
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod, PodStatus
from prime_train.core.wire import Ticket
from prime_train.ports import ExternalError, Installer, LimitReached, NoCapacity, PermanentError, SshAddress, TemporaryError

IMAGE = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
"""An image of RunPod's own, whose start script serves SSH for PUBLIC_KEY. It is kept on RunPod's machines, so that it starts quickly."""
SSH_PORTS = ("22/tcp",)
EXAMPLE_ID = "NVIDIA-H100-80GB-HBM3:8x:US-KS-2:secure:on-demand"

log = logging.getLogger(__name__)


class RunPodPods:
    """Pods of one account. `pusher` installs the agent. `public_key`, in OpenSSH's format, is put on every machine; without it, the
    account's keys are. `closed`: the reason why nothing may be rented; empty if renting is allowed. `mark` distinguishes this control
    plane's pods from those of others on the account. `owner` raises if the key belongs to another account than this control plane's
    machines; offers may be listed with any account. `clouds`: those whose machines may be rented."""

    def __init__(
        self,
        client: RunPodClient,
        pusher: Installer,
        *,
        public_key: str = "",
        mark: Mark | None = None,
        closed: str = "",
        owner: Guard | None = None,
        clouds: Sequence[str] = CLOUDS,
    ) -> None:
        self._client, self._pusher, self._public_key = client, pusher, public_key
        self._closed, self._owner = closed, owner if owner is not None else _anybody
        self._mark = mark if mark is not None else Mark()
        self._clouds = tuple(clouds)
        self._machines: dict[str, Machine] = {}
        self._refused: dict[str, str] = {}
        self._burn_usd_per_hour = 0.0

    # -------------------------------------------------------------------------------------------------------------- the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return every machine that is not sold out and has a wanted number of GPUs."""
        if self._closed:
            raise PermanentError(self._closed)
        found: dict[str, Machine] = {}
        for count in offers.counts(hardware):
            for cloud in CLOUDS:
                rows = readable(GpuType, self._client.gpus(cloud, count), TITLE)
                for machine in offers.machines(rows, count, cloud):
                    found.setdefault(machine.offer_id, machine)
        self._machines = found
        return [offers.offer(machine, hardware, self._clouds) for machine in found.values()]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Rent the machine at its listed price, whatever price `offer` has. Raises NoCapacity also if the machine now costs more than the
        run allows."""
        self._owner(renting=name)
        machine = self._machine(offer.offer_id, hardware)
        most_usd = self._ceiling_usd(machine, hardware)
        marked = self._mark.on(name)
        try:
            rented = self._client.create(_order(marked, machine, hardware, self._public_key))
        except LimitReached:
            raise
        except MaybeOurFault as error:
            self._refused[offer.offer_id] = str(error)
            raise self._whose_fault(hardware, f"{offer.offer_id}: {error}") from error
        except NoCapacity as error:
            raise NoCapacity(f"{offer.offer_id}: {error}") from error
        self._refused = {}
        if rented.name != marked:
            raise TemporaryError(f"the answer to the create call is about another pod than {marked}")
        if usd_per_hour(rented) > most_usd:
            self._give_back(rented, offer.offer_id, most_usd)
        return replace(pod_of(rented), name=name)

    def list(self) -> Sequence[Pod]:
        """Return the pods whose names this control plane chose; the account may have others. Pods reported as terminated are left out;
        `get` returns them."""
        self._refuse_stranger()
        pods = [pod_of(rented) for rented in self._client.pods()]
        self._burn_usd_per_hour = sum(pod.usd_per_hour for pod in pods if pod.status is not PodStatus.GONE)
        named = [self._named(pod) for pod in pods]
        return owned(named)

    def get(self, pod_id: str) -> Pod | None:
        """Return the pod, or None if RunPod does not know its id.

        A pod of this control plane that has exited is terminated here: its disk is lost, and neither its agent nor its GPUs come back, but
        it stays on the list. Only when RunPod has confirmed the termination is it GONE.
        """
        rented = self._found(pod_id)
        if rented is None:
            return None
        pod = self._named(pod_of(rented))
        return self._ended(pod) if has_exited(rented) and parse_pod_name(pod.name) is not None else pod

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Install and start the agent. Raises TemporaryError if the pod is gone, still booting, unhealthy or has no SSH address yet, or if
        its agent could not reach this control plane."""
        if self._closed:
            raise TemporaryError(self._closed)
        rented = self._found(pod.pod_id)
        if rented is None:
            raise TemporaryError(f"pod {short(pod.pod_id)} is gone")
        connection = address_of_ready(pod.pod_id, pod_of(rented), short(rented.status or "it has no status"), connection_of(rented))
        self._pusher(connection, ticket)

    def connection(self, pod_id: str) -> SshAddress | None:
        """Return the pod's SSH address, or None if it is gone or has none yet."""
        rented = self._client.pod(pod_id) if is_pod_id(pod_id) else None
        return connection_of(rented) if rented is not None else None

    def terminate(self, pod_id: str) -> None:
        """Terminate the pod. The request is sent before the account is checked, because the pod is being paid for. If RunPod does not know
        the id, the check follows and raises if the key is another account's, since the answer then proves nothing."""
        if is_pod_id(pod_id) and not self._client.delete(pod_id):
            self._owner()

    def burn_usd_per_hour(self) -> float:
        """Return the hourly cost in USD of all pods listed last, whoever rented them."""
        return self._burn_usd_per_hour

    # ----------------------------------------------------------------------------------------------------------------- inside

    def _found(self, pod_id: str) -> Rented | None:
        """Return the pod, or None if RunPod does not know its id. Before None is returned, the key's account is checked, because under
        another account's key every pod would be unknown."""
        rented = self._client.pod(pod_id) if is_pod_id(pod_id) else None
        if rented is None:
            self._owner()
        return rented

    def _ended(self, pod: Pod) -> Pod:
        """Return the exited pod as gone once it is terminated; as broken while it cannot be."""
        try:
            self._client.delete(pod.pod_id)
        except ExternalError as error:
            log.warning("pod %s has exited, and could not be terminated yet: %s", pod.pod_id, error)
            return pod
        return replace(pod, status=PodStatus.GONE)

    def _refuse_stranger(self) -> None:
        """Raise PermanentError if the key belongs to another account. An unknown owner is accepted here, because nothing is concluded from
        a pod missing in the list."""
        try:
            self._owner()
        except TemporaryError as error:
            log.warning("the account of the key cannot be determined now: %s", error)

    def _named(self, pod: Pod) -> Pod:
        """Return the pod with the mark removed from its name; a pod without this control plane's mark gets an empty name."""
        return replace(pod, name=self._mark.without(pod.name) or "")

    def _machine(self, offer_id: str, hardware: HardwareSpec) -> Machine:
        if offer_id not in self._machines and offers.is_offer_id(offer_id):
            self.offers(hardware)
        machine = self._machines.get(offer_id)
        if machine is not None:
            return machine
        if offers.is_offer_id(offer_id):
            raise NoCapacity(f"{offer_id} is no longer for rent")
        raise PermanentError(f"there is no offer {offer_id!r}; ids look like {EXAMPLE_ID}")

    def _ceiling_usd(self, machine: Machine, hardware: HardwareSpec) -> float:
        found, most_usd = offers.offer(machine, hardware, self._clouds), hardware.usd_per_hour_max
        if found.hindrance:
            raise PermanentError(f"{found.offer_id} {found.hindrance}")
        if most_usd is not None and found.usd_per_hour > most_usd:
            raise NoCapacity(f"{found.offer_id} now costs ${found.usd_per_hour:.2f}/h, above hardware.usd_per_hour_max {most_usd:.2f}")
        return ceiling_usd(found.usd_per_hour, most_usd)

    def _whose_fault(self, hardware: HardwareSpec, refusal: str) -> ExternalError:
        """Return the error for a refusal that may be our fault. One machine that is refused may be taken; if all that fit are refused, with
        nothing rented in between, there is probably a mistake in the request."""
        every = [offers.offer(machine, hardware, self._clouds) for machine in self._machines.values()]
        fitting = {offer.offer_id for offer in rank(every, hardware).best}
        if len(fitting) > 1 and fitting <= self._refused.keys():
            return PermanentError(f"{refusal}; all {len(fitting)} machines that fit were refused, so the request itself may be at fault")
        return NoCapacity(refusal)

    def _give_back(self, rented: Rented, offer_id: str, most_usd: float) -> None:
        dear = f"{offer_id} was rented at ${usd_per_hour(rented):.4f}/h, above ${most_usd:.4f}"
        try:
            self._client.delete(rented.id)
        except ExternalError as error:
            # The pod exists, and the core finds it by its name: a dear machine that trains is better than an unknown one.
            raise TemporaryError(f"{dear}, and pod {rented.id} could not be terminated: {error}") from error
        raise NoCapacity(f"{dear}; pod {rented.id} was terminated")


def _image(hardware: HardwareSpec) -> dict[str, object]:
    """Return the field that says which image the pod starts from."""
    if hardware.image is None:
        return {"image": IMAGE}
    if form_of(hardware.image) is ImageForm.TEMPLATE:
        return {"templateId": hardware.image.removeprefix(TEMPLATE)}
    return {"image": hardware.image}


def _order(name: str, machine: Machine, hardware: HardwareSpec, public_key: str) -> dict[str, object]:
    """Return the body of the create call. It contains no settings and no secrets: anyone who may read the account's pods sees it."""
    order: dict[str, object] = {
        "name": name,
        **_image(hardware),
        "gpu": {"id": machine.gpu.id, "count": machine.count, "minCudaVersion": CUDA_MIN},
        "cloud": machine.cloud,
        "disk": offers.disk_gb(hardware),
        "ports": list(SSH_PORTS),
        "startSsh": True,
    }
    if machine.place is not None:
        order["dataCenterIds"] = [machine.place.id]
    if public_key:
        order["env"] = {"PUBLIC_KEY": public_key.strip()}
    return order


def _anybody(renting: str = "") -> None:
    """Accept any account."""

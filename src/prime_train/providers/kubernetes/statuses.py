"""Conversion of Jobs and their pods to the pods of the port `Pods`.

Only containers that have ended are GONE. What Kubernetes says of a node that it cannot reach, and of a pod
that it has been told to end, is UNKNOWN: the agent may still run there, and heartbeats decide.
"""

import re
from collections.abc import Sequence

from prime_train.providers.kubernetes.manifests import NAME, OFFER, QUEUE, USD
from prime_train.providers.kubernetes.models import Condition, ContainerStatus, KubernetesJob, KubernetesPod
from prime_train.providers.kubernetes.offers import POOL, place_of
from prime_train.providers.rental.parsing import USD_MAX, second
from prime_train.providers.rental.reasons import short
from prime_train.runs.verdict import Pod, PodStatus

UNSCHEDULABLE_S = 180
"""Seconds for which a pod may wait for a node that should have been free; one of a pool or a queue may wait
as long as the run allows.
"""
NO_CLAIM = re.compile(r'persistentvolumeclaim "[^"]*" (?:not found|is being deleted)')
"""What the scheduler says of a pod whose claim is not there: no node that is added, and no turn in a queue,
helps.
"""
NO_POD_S = 180
"""Seconds within which the cluster makes a Job's pod, unless it refuses to, as by a quota of the
namespace.
"""
PULL_S = 300
"""Seconds for which an image that cannot be pulled is tried again, as the kubelet does."""
BROKEN_AT_ONCE = frozenset(
    {
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)
BROKEN_LATER = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)

Seen = tuple[PodStatus, str]
"""A status with the reason for it, for people; empty if it is an ordinary one."""


def pod_of(job: KubernetesJob | None, pods: Sequence[KubernetesPod], now_s: float) -> Pod | None:
    """Return the machine that a Job and its pods are; None if there are neither. `now_s`: the time at the
    cluster.
    """
    found = status_of(job, pods, now_s)
    if found is None:
        return None
    status, _ = found
    metadata = job.metadata if job is not None else pods[0].metadata
    pod_id = job.pod_id if job is not None else f"{pods[0].job_name}.{pods[0].job_uid}"
    ended_s = (_ended_s(job, pods) or None) if status is PodStatus.GONE else None
    return Pod(
        pod_id,
        metadata.annotations.get(NAME, ""),
        status,
        metadata.created_s,
        _usd(metadata.annotations),
        ended_s,
    )


def status_of(job: KubernetesJob | None, pods: Sequence[KubernetesPod], now_s: float) -> Seen | None:
    """Return the status and the reason for it; None if there is neither a Job nor a pod."""
    living = [pod for pod in pods if not pod.has_ended]
    if living:
        return (
            _of_living(job, living[-1], now_s)
            if len(living) == 1
            else (PodStatus.UNKNOWN, "its Job has several pods")
        )
    if job is None:
        return (PodStatus.GONE, "its Job was deleted") if pods else None
    ended = job.condition("Complete", "Failed")
    if ended is not None:
        return PodStatus.GONE, _words(ended) if ended.type == "Failed" else ""
    if pods:
        return PodStatus.GONE, _exit_of(pods[-1])
    if job.metadata.is_ending:
        return PodStatus.UNKNOWN, "its Job is being deleted"
    return _without_pod(job, now_s)


def _of_living(job: KubernetesJob | None, pod: KubernetesPod, now_s: float) -> Seen:
    if (
        job is None
        or job.metadata.is_ending
        or pod.metadata.is_ending
        or job.condition("FailureTarget", "SuccessCriteriaMet")
    ):
        return PodStatus.UNKNOWN, "its pod is being ended"
    if pod.status.phase == "Running":
        return PodStatus.ACTIVE, ""
    if pod.status.phase != "Pending":
        return PodStatus.UNKNOWN, f"its pod is {short(pod.status.phase or 'without a phase')}"
    return _of_scheduled(pod, now_s) if pod.spec.nodeName else _of_unscheduled(job, pod, now_s)


def _of_unscheduled(job: KubernetesJob, pod: KubernetesPod, now_s: float) -> Seen:
    scheduled = pod.condition("PodScheduled")
    if scheduled is None or scheduled.holds or scheduled.reason != "Unschedulable":
        return PodStatus.PENDING, ""
    waited_s = now_s - max(scheduled.since_s, pod.metadata.created_s)
    waits_in_vain = NO_CLAIM.search(scheduled.message or "") is not None or not _may_wait(job)
    return (PodStatus.BROKEN if waited_s > UNSCHEDULABLE_S and waits_in_vain else PodStatus.PENDING), _words(
        scheduled
    )


def _of_scheduled(pod: KubernetesPod, now_s: float) -> Seen:
    """Return the status of a pod that has a node: it is ready for its agent, for which the container waits,
    unless it can never start.
    """
    reasons = [
        each
        for each in map(_waiting, (*pod.status.initContainerStatuses, *pod.status.containerStatuses))
        if each[0]
    ]
    scheduled = pod.condition("PodScheduled")
    since_s = max(scheduled.since_s if scheduled is not None else 0, pod.metadata.created_s)
    for reason, words in reasons:
        if reason in BROKEN_AT_ONCE or (reason in BROKEN_LATER and now_s - since_s > PULL_S):
            return PodStatus.BROKEN, words
    return PodStatus.ACTIVE, ""


def _without_pod(job: KubernetesJob, now_s: float) -> Seen:
    if job.spec.suspend or _may_wait(job):
        return PodStatus.PENDING, "its Job waits in a queue" if job.spec.suspend else ""
    since_s = max(job.metadata.created_s, second(job.status.startTime))
    if now_s - since_s <= NO_POD_S:
        return PodStatus.PENDING, ""
    return PodStatus.BROKEN, "the cluster makes no pod for its Job; `kubectl describe job` says why"


def _may_wait(job: KubernetesJob) -> bool:
    return QUEUE in job.metadata.labels or place_of_job(job).startswith(POOL)


def place_of_job(job: KubernetesJob) -> str:
    """Return the kind of machine that the Job was made for."""
    return place_of(job.metadata.annotations.get(OFFER, ""))


def _waiting(container: ContainerStatus) -> tuple[str, str]:
    reason = container.text("waiting", "reason")
    return reason, short(f"{reason}: {container.text('waiting', 'message')}")


def _words(condition: Condition) -> str:
    return short(f"{condition.reason or condition.type}: {condition.message or ''}")


def _exit_of(pod: KubernetesPod) -> str:
    for each in pod.status.containerStatuses:
        if (reason := each.text("terminated", "reason")) not in ("", "Completed"):
            return short(f"its container ended: {reason} {each.text('terminated', 'message')}")
    return ""


def _ended_s(job: KubernetesJob | None, pods: Sequence[KubernetesPod]) -> int:
    """Return when the last container ended, or else when the Job did; 0 if neither is known."""
    ends = [
        second(each.text("terminated", "finishedAt")) for pod in pods for each in pod.status.containerStatuses
    ]
    ended = job.condition("Complete", "Failed") if job is not None else None
    return max(ends, default=0) or (ended.since_s if ended is not None else 0)


def _usd(annotations: dict[str, str]) -> float:
    try:
        usd = float(annotations.get(USD, ""))
    except ValueError:
        return 0.0
    return usd if 0 <= usd <= USD_MAX else 0.0

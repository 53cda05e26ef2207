"""Which pods a control plane looks after, and when an agent can be installed on one."""

from collections.abc import Iterable

from prime_train.core.keys import parse_pod_name
from prime_train.core.verdict import Pod, PodStatus
from prime_train.ports import SshAddress, TemporaryError


def owned(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that exist and whose names a control plane chose. A pod without this control plane's mark has an empty name."""
    return [pod for pod in pods if parse_pod_name(pod.name) is not None and pod.status is not PodStatus.GONE]


def address_of_ready(pod_id: str, seen: Pod, condition: str, address: SshAddress | None) -> SshAddress:
    """Return the address at which the agent of a pod can be installed. `seen`: the pod as the provider reports it;
    `condition`: the provider's own words for its status. Raises TemporaryError if the pod is gone, still booting, unhealthy or has
    no address yet."""
    if seen.status is PodStatus.GONE:
        raise TemporaryError(f"pod {pod_id} is gone")
    if seen.status is PodStatus.PENDING:
        raise TemporaryError(f"pod {pod_id} is still booting")
    if seen.status is not PodStatus.ACTIVE:
        raise TemporaryError(f"pod {pod_id} is not healthy: {condition}")
    if address is None:
        raise TemporaryError(f"pod {pod_id} has no SSH address yet")
    return address

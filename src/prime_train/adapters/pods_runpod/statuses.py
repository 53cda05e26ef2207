"""Conversion of RunPod's pod statuses to those of the port `Pods`."""

from prime_train.adapters.pods_runpod.connection import has_no_address
from prime_train.adapters.pods_runpod.models import Rented
from prime_train.adapters.rental_api.parsing import believable_usd, second
from prime_train.core.verdict import Pod, PodStatus

EXITED = "EXITED"
STATUSES = {
    "PROVISIONING": PodStatus.PENDING,
    "STARTING": PodStatus.PENDING,
    "RUNNING": PodStatus.ACTIVE,
    EXITED: PodStatus.BROKEN,
    "ERROR": PodStatus.BROKEN,
    "TERMINATED": PodStatus.GONE,
}
"""The status of the port `Pods` for each of RunPod's; any other one becomes UNKNOWN.

A pod that has exited has lost its disk, and its machine may be given to others, but it is listed, and a disk that outlives its container
is charged for, until it is terminated. See `RunPodPods.get`."""


def pod_of(rented: Rented) -> Pod:
    """Return the pod. One that runs without an address is broken: no agent can be installed on it."""
    status = STATUSES.get((rented.status or "").upper(), PodStatus.UNKNOWN)
    if status is PodStatus.ACTIVE and has_no_address(rented):
        status = PodStatus.BROKEN
    return Pod(rented.id, rented.name or "", status, second(rented.created_at), believable_usd(rented.cost))


def has_exited(rented: Rented) -> bool:
    return (rented.status or "").upper() == EXITED

"""Conversion of Prime's pod statuses to those of the port `Pods`."""

from prime_train.adapters.pods_prime.models import Rented
from prime_train.adapters.rental_api.parsing import believable_usd, second
from prime_train.core.verdict import Pod, PodStatus

STATUSES = {
    "PROVISIONING": PodStatus.PENDING,
    "PENDING": PodStatus.PENDING,
    "ACTIVE": PodStatus.ACTIVE,
    "TERMINATED": PodStatus.GONE,
    "ERROR": PodStatus.BROKEN,
    "STOPPED": PodStatus.BROKEN,
}
"""The status of the port `Pods` for each of Prime's; any other one of Prime's, such as DELETING or UNKNOWN, becomes UNKNOWN.

Only TERMINATED and an unknown id prove that a pod has ended: with any other status the machine may still run and cost money, and heartbeats
decide. How Prime reports a preempted machine is not documented."""

INSTALLING = frozenset({"PENDING", "ACTIVE"})
"""Statuses of an installation in progress; ACTIVE means that it is under way."""
BROKEN = frozenset({"ERROR", "TERMINATED"})


def status_of(rented: Rented) -> PodStatus:
    """Return ACTIVE only if the installation has finished too. It counts as finished if its progress is 100 %, or if Prime reports no
    status for it."""
    status = STATUSES.get((rented.status or "").upper(), PodStatus.UNKNOWN)
    installation = (rented.installation_status or "").upper()
    if status is not PodStatus.ACTIVE:
        return status
    if installation in BROKEN:
        return PodStatus.BROKEN
    return PodStatus.PENDING if installation in INSTALLING and (rented.installation_progress or 0) < 100 else PodStatus.ACTIVE


def pod_of(rented: Rented) -> Pod:
    ended_s = second(rented.terminated_at) or None
    return Pod(rented.id, rented.name or "", status_of(rented), second(rented.created_at), believable_usd(rented.price_hr), ended_s)

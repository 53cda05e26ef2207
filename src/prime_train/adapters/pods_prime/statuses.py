"""What Prime's words for a pod mean to us."""

from datetime import UTC, datetime

from prime_train.adapters.pods_prime.models import USD_MAX, Rented
from prime_train.core.verdict import Pod, PodStatus

STATUSES = {
    "PROVISIONING": PodStatus.PENDING,
    "PENDING": PodStatus.PENDING,
    "ACTIVE": PodStatus.ACTIVE,
    "TERMINATED": PodStatus.GONE,
    "ERROR": PodStatus.BROKEN,
    "STOPPED": PodStatus.BROKEN,
}
"""How a machine that was taken away shows is not documented. Only TERMINATED, and an id that is no longer known, say that one is gone. In
ERROR and STOPPED it may still run and be paid for, as in DELETING, UNKNOWN and any word to come, which are ODD: there heartbeats decide."""

INSTALLING = frozenset({"PENDING", "ACTIVE"})
"""Of the installation, ACTIVE means that it goes on."""
BROKEN = frozenset({"ERROR", "TERMINATED"})


def status_of(rented: Rented) -> PodStatus:
    """ACTIVE only when the machine is installed as well. Without a word about that, it is; and at 100 % too, whatever the word."""
    status = STATUSES.get((rented.status or "").upper(), PodStatus.ODD)
    installation = (rented.installation_status or "").upper()
    if status is not PodStatus.ACTIVE:
        return status
    if installation in BROKEN:
        return PodStatus.BROKEN
    return PodStatus.PENDING if installation in INSTALLING and (rented.installation_progress or 0) < 100 else PodStatus.ACTIVE


def pod_of(rented: Rented) -> Pod:
    ended_s = second(rented.terminated_at) or None
    return Pod(rented.id, rented.name or "", status_of(rented), second(rented.created_at), _usd_per_hour(rented), ended_s)


def _usd_per_hour(rented: Rented) -> float:
    """0 for a price that cannot be one, which is not to be reckoned with."""
    price = rented.price_hr or 0.0
    return round(price, 6) if 0 <= price <= USD_MAX else 0.0


def second(text: str | None) -> int:
    """Of a time as ISO 8601 writes it, taken as UTC where it names no zone; 0 where it is not told, not understood, or
    the year 1, which some write for a time that has not come."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return 0
    return max(0, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()))

"""Conversion of Lambda Cloud's instances to the pods of the port `Pods`.

Instances have no time of creation, and names of at most 64 characters. So both are put on them as tags when they are launched; the name is
also given as such, cut if it is too long, for people and in case that tags are not reported.
"""

from prime_train.adapters.pods_lambda.models import Rented
from prime_train.core.verdict import Pod, PodStatus

NAME_CHARS_MAX = 64
NAME_TAG = "prime-train:name"
CREATED_TAG = "prime-train:created"
SECOND_DIGITS_MAX = 10

BOOTING = "booting"
PREEMPTED = "preempted"
STATUSES = {
    BOOTING: PodStatus.PENDING,
    "active": PodStatus.ACTIVE,
    "unhealthy": PodStatus.BROKEN,
    PREEMPTED: PodStatus.GONE,
    "terminated": PodStatus.GONE,
}
"""The status of the port `Pods` for each of Lambda Cloud's; any other one, such as terminating, becomes UNKNOWN: the machine may still run,
and heartbeats decide."""


def pod_of(rented: Rented) -> Pod:
    status = STATUSES.get((rented.status or "").lower(), PodStatus.UNKNOWN)
    return Pod(rented.id, name_of(rented), status, created_s(rented), rented.usd_per_hour)


def name_of(rented: Rented) -> str:
    """Return the full name that the instance was launched under."""
    return rented.tag(NAME_TAG) or rented.name or ""


def created_s(rented: Rented) -> int:
    """Return the second at which the launch was requested; 0 if that is not known."""
    text = rented.tag(CREATED_TAG)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= SECOND_DIGITS_MAX else 0


def is_preempted(rented: Rented) -> bool:
    return (rented.status or "").lower() == PREEMPTED


def tags(name: str, now_s: int) -> list[dict[str, str]]:
    return [{"key": NAME_TAG, "value": name}, {"key": CREATED_TAG, "value": str(now_s)}]

"""Stores each heartbeat and each commit from an agent by one conditional write to one lease item.

This module does not parse heartbeats. If the condition is not met, DynamoDB returns the existing item, which shows whether the call is a
repeat or the attempt has been fenced.
"""

from typing import Any, NamedTuple

from prime_train.adapters.store_dynamo.calls import RequestRefused
from prime_train.adapters.store_dynamo.schema import Value, lease_key
from prime_train.adapters.store_dynamo.table import Table, Unmet, Write

FORMS_MAX = 8
"""Tries of a heartbeat with news while other writers move the run's next check across the present second."""

_HEARTBEAT = "SET seq = :seq, heartbeat_s = :now, heartbeat = :heartbeat"
_HEARTBEAT_IF = "is_open = :yes AND attempt = :attempt AND seq < :seq AND "
_COMMIT = "SET committed_step = :step, committed_key = :key ADD lease_version :one"
_COMMIT_IF = "is_open = :yes AND attempt = :attempt AND committed_step < :step AND "
_OF_IDENTITY, _OF_NONE = "attempt_id = :identity", "attribute_not_exists(attempt_id)"
"""An attempt from before identities were introduced has none, and neither has its lease."""

# Update expressions have no minimum, so there are two forms: one moves a later check to now, the other leaves a due check as it is; each is
# conditional on its case.
_PLAIN = (f"{_HEARTBEAT} ADD lease_version :one", _HEARTBEAT_IF)
_WAKING = (
    f"{_HEARTBEAT}, next_check_s = :now ADD lease_version :one, run_version :one",
    f"(attribute_not_exists(next_check_s) OR next_check_s > :now) AND {_HEARTBEAT_IF}",
)
_AWAKE = (f"{_HEARTBEAT} ADD lease_version :one, run_version :one", f"next_check_s <= :now AND {_HEARTBEAT_IF}")


class Told(NamedTuple):
    """The result of a heartbeat or a commit. `verdict` and `order` are values of the wire's enums. `pace_s` is the number of seconds
    between heartbeats in the run's spec; None if the item does not hold it."""

    verdict: str
    order: str = "none"
    reason: str = ""
    committed_step: int = 0
    pace_s: int | None = None


_FENCED = Told("fenced")


def heartbeat(table: Table, run_id: str, *, attempt: int, seq: int, text: str, news: bool, now_s: int, identity: str = "") -> Told:
    """Store `text`, the heartbeat's JSON, if the lease is open and of that attempt and `seq` is new; with `news`, the same write wakes the
    run."""
    whose, named = _whose(identity)
    values: dict[str, Value] = {"yes": True, "attempt": attempt, "seq": seq, "now": now_s, "heartbeat": text, "one": 1, **named}
    update, condition = _WAKING if news else _PLAIN
    for _ in range(FORMS_MAX):
        try:
            return _told("ok", table.update(lease_key(run_id), Write(update, condition + whose, values)))
        except Unmet as unmet:
            there = unmet.item
        if there is None or not _is_current(there, attempt, identity):
            return _FENCED
        if seq <= there["seq"]:
            return _told("repeated", there)
        update, condition = _AWAKE if there.get("next_check_s", now_s + 1) <= now_s else _WAKING
    raise table.outside("heartbeat", RequestRefused("TransactionConflictException"))


def commit(table: Table, run_id: str, *, attempt: int, step: int, key: str, identity: str = "") -> Told:
    whose, named = _whose(identity)
    values: dict[str, Value] = {"yes": True, "attempt": attempt, "step": step, "key": key, "one": 1, **named}
    try:
        return _told("ok", table.update(lease_key(run_id), Write(_COMMIT, _COMMIT_IF + whose, values)))
    except Unmet as unmet:
        there = unmet.item
    return _told("repeated", there) if there is not None and _is_current(there, attempt, identity) else _FENCED


def _whose(identity: str) -> tuple[str, dict[str, Value]]:
    """Return the part of a condition that compares the attempt's identity, and the value it uses."""
    return (_OF_IDENTITY, {"identity": identity}) if identity else (_OF_NONE, {})


def _is_current(item: dict[str, Any], attempt: int, identity: str) -> bool:
    return bool(item["is_open"]) and (item["attempt"], item.get("attempt_id", "")) == (attempt, identity)


def _told(verdict: str, item: dict[str, Any]) -> Told:
    return Told(verdict, item["asked"], item["asked_why"], item["committed_step"], item.get("pace_s"))

"""Stores each heartbeat and each commit from an agent by one conditional write to one lease item.

This module does not parse heartbeats. If the condition is not met, DynamoDB returns the existing item, which
shows whether the call is a repeat or the attempt has been fenced.
"""

from typing import Any, NamedTuple

from prime_train.stores.dynamo.calls import RequestRefused
from prime_train.stores.dynamo.schema import Value, lease_key
from prime_train.stores.dynamo.table import Table, Unmet, Write

FORMS_MAX = 8
"""Number of tries to store a heartbeat with news. Its write has two forms, for a run whose next check is due
and for one whose next check is later. A try fails if another writer has just changed which of the two
applies.
"""

_HEARTBEAT = "SET seq = :seq, heartbeat_s = :now, heartbeat = :heartbeat"
_HEARTBEAT_IF = "is_open = :yes AND attempt = :attempt AND seq < :seq AND "
_COMMIT = "SET committed_step = :step, committed_key = :key ADD lease_version :one"
_COMMIT_IF = "is_open = :yes AND attempt = :attempt AND committed_step < :step AND "
_OF_IDENTITY, _OF_NONE = "attempt_id = :identity", "attribute_not_exists(attempt_id)"
"""Conditions on the lease's identity: for an attempt that has an identity, and for an attempt from before
identities existed.
"""

# Update expressions have no minimum, so there are two forms: one moves a later check to now, the other leaves
# a due check as it is; each is conditional on its case.
_PLAIN = (f"{_HEARTBEAT} ADD lease_version :one", _HEARTBEAT_IF)
_WAKING = (
    f"{_HEARTBEAT}, next_check_s = :now ADD lease_version :one, run_version :one",
    f"(attribute_not_exists(next_check_s) OR next_check_s > :now) AND {_HEARTBEAT_IF}",
)
_AWAKE = (
    f"{_HEARTBEAT} ADD lease_version :one, run_version :one",
    f"next_check_s <= :now AND {_HEARTBEAT_IF}",
)


class HeartbeatResult(NamedTuple):
    """The result of a heartbeat or a commit. `outcome` and `order` are values of the wire's enums. `pace_s`
    is the number of seconds between heartbeats in the run's spec; None if the item does not hold it.
    """

    outcome: str
    order: str = "none"
    reason: str = ""
    committed_step: int = 0
    pace_s: int | None = None


_FENCED = HeartbeatResult("fenced")


def heartbeat(
    table: Table,
    run_id: str,
    *,
    attempt: int,
    seq: int,
    text: str,
    news: bool,
    now_s: int,
    identity: str = "",
) -> HeartbeatResult:
    """Store `text`, the heartbeat's JSON, on three conditions: the lease is open, that attempt holds it, and
    `seq` is new. With `news`, the same write makes the run due for a watcher.
    """
    whose, named = _whose(identity)
    values: dict[str, Value] = {
        "yes": True,
        "attempt": attempt,
        "seq": seq,
        "now": now_s,
        "heartbeat": text,
        "one": 1,
        **named,
    }
    update, condition = _WAKING if news else _PLAIN
    for _ in range(FORMS_MAX):
        try:
            return _result("ok", table.update(lease_key(run_id), Write(update, condition + whose, values)))
        except Unmet as unmet:
            there = unmet.item
        if there is None or not _is_current(there, attempt, identity):
            return _FENCED
        if seq <= there["seq"]:
            return _result("repeated", there)
        update, condition = _AWAKE if there.get("next_check_s", now_s + 1) <= now_s else _WAKING
    raise table.external_error("heartbeat", RequestRefused("TransactionConflictException"))


def commit(
    table: Table, run_id: str, *, attempt: int, step: int, key: str, identity: str = ""
) -> HeartbeatResult:
    whose, named = _whose(identity)
    values: dict[str, Value] = {"yes": True, "attempt": attempt, "step": step, "key": key, "one": 1, **named}
    try:
        return _result("ok", table.update(lease_key(run_id), Write(_COMMIT, _COMMIT_IF + whose, values)))
    except Unmet as unmet:
        there = unmet.item
    return (
        _result("repeated", there) if there is not None and _is_current(there, attempt, identity) else _FENCED
    )


def _whose(identity: str) -> tuple[str, dict[str, Value]]:
    """Return the part of a condition that compares the attempt's identity, and the value it uses."""
    return (_OF_IDENTITY, {"identity": identity}) if identity else (_OF_NONE, {})


def _is_current(item: dict[str, Any], attempt: int, identity: str) -> bool:
    return bool(item["is_open"]) and (item["attempt"], item.get("attempt_id", "")) == (attempt, identity)


def _result(outcome: str, item: dict[str, Any]) -> HeartbeatResult:
    return HeartbeatResult(
        outcome, item["asked"], item["asked_why"], item["committed_step"], item.get("pace_s")
    )

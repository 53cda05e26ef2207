"""Conversion between prime-train's values and the attributes of items."""

from dataclasses import dataclass, replace
from typing import Any

from prime_train.runs.run import Lease, Run
from prime_train.runs.stored_json import load, readable
from prime_train.runs.wire import Heartbeat, Order
from prime_train.stores.dynamo.schema import Value


@dataclass(frozen=True)
class Head:
    """The content of a lease item: the lease, and those values of the run that are queried or changed without
    its JSON.

    `saved_version`: the run's version when its JSON was last written. `pace_s`: seconds between heartbeats,
    so that a heartbeat is answered without reading the run; None in an item from before this attribute
    existed. `at_rest`: there is no lease item, and the run's own item holds these values.
    """

    lease: Lease
    run_version: int
    saved_version: int
    next_check_s: int | None
    overdue_s: int
    pace_s: int | None
    at_rest: bool = False


def heartbeat_text(heartbeat: Heartbeat) -> str:
    """Return the heartbeat's JSON without default values, so that it fits into one write unit together with
    the lease.
    """
    return heartbeat.model_dump_json(exclude_defaults=True)


def head_values(head: Head) -> dict[str, Value | None]:
    """Return every attribute of a lease item except its key; None for attributes that it does not have."""
    return run_values(head) | lease_values(head.lease)


def run_values(head: Head) -> dict[str, Value | None]:
    return {
        "run_version": head.run_version,
        "saved_version": head.saved_version,
        "next_check_s": head.next_check_s,
        "overdue_s": head.overdue_s,
        "pace_s": head.pace_s,
    }


def lease_values(lease: Lease) -> dict[str, Value | None]:
    return {
        "attempt": lease.attempt,
        "is_open": lease.open,
        "lease_version": lease.version,
        "seq": lease.seq,
        "heartbeat_s": lease.heartbeat_s,
        "heartbeat": heartbeat_text(lease.heartbeat) if lease.heartbeat is not None else None,
        "asked": lease.order.value,
        "asked_why": readable(lease.order_reason),
        "committed_step": lease.committed_step,
        "committed_key": lease.committed_key,
        "attempt_id": lease.identity or None,
    }


def given(values: dict[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}


def is_head(item: dict[str, Any]) -> bool:
    """Return whether the item has a lease item's attributes, as the own item of a run at rest does."""
    return "run_version" in item


def head_of(item: dict[str, Any]) -> Head:
    """Return the head from a lease item or from the own item of a run at rest. Raises ValueError if its
    heartbeat cannot be parsed.
    """
    heartbeat = Heartbeat.model_validate_json(item["heartbeat"]) if "heartbeat" in item else None
    lease = Lease(
        run_id=item["SK"],
        attempt=item["attempt"],
        open=item["is_open"],
        version=item["lease_version"],
        seq=item["seq"],
        heartbeat_s=item.get("heartbeat_s"),
        heartbeat=heartbeat,
        order=Order(item["asked"]),
        order_reason=item["asked_why"],
        committed_step=item["committed_step"],
        committed_key=item["committed_key"],
        identity=item.get("attempt_id", ""),
    )
    versions = (item["run_version"], item["saved_version"])
    return Head(
        lease,
        *versions,
        item.get("next_check_s"),
        item["overdue_s"],
        item.get("pace_s"),
        at_rest="run" in item,
    )


def run_of(item: dict[str, Any], head: dict[str, Any]) -> Run:
    """Return the run in its own item, with the newer version and next check from the lease item."""
    return replace(load(Run, item["run"]), version=head["run_version"], next_check_s=head.get("next_check_s"))

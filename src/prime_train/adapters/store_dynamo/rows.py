"""Our values as attributes of items, and back."""

from dataclasses import dataclass, replace
from typing import Any

from prime_train.adapters.store_dynamo.schema import Value
from prime_train.adapters.stored import load, readable
from prime_train.core.run import Lease, Run
from prime_train.core.wire import Heartbeat, Order


@dataclass(frozen=True)
class Head:
    """What a lease item holds: the lease, and of the run what is asked for or changes without its JSON.

    `saved_version`: the run's version when its JSON was last written. `pace_s`: between heartbeats, so that one is answered without the
    run; None in an item that was written before there was such. `at_rest`: there is no lease item, the run's own item has all this.
    """

    lease: Lease
    run_version: int
    saved_version: int
    next_check_s: int | None
    overdue_s: int
    pace_s: int | None
    at_rest: bool = False


def heartbeat_text(heartbeat: Heartbeat) -> str:
    """Without what is as it is by default: it shall fit into one write unit with the lease around it."""
    return heartbeat.model_dump_json(exclude_defaults=True)


def head_values(head: Head) -> dict[str, Value | None]:
    """Every attribute of a lease item but its key; None where it has none."""
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
    """Whether a run's own item has what a lease item has: the run is at rest."""
    return "run_version" in item


def head_of(item: dict[str, Any]) -> Head:
    """From a lease item or, of a run at rest, from its own. ValueError where the heartbeat in it cannot be read."""
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
    return Head(lease, *versions, item.get("next_check_s"), item["overdue_s"], item.get("pace_s"), at_rest="run" in item)


def run_of(item: dict[str, Any], head: dict[str, Any]) -> Run:
    """The run in its own item, with what is true in the lease item."""
    return replace(load(Run, item["run"]), version=head["run_version"], next_check_s=head.get("next_check_s"))

"""Conversion between prime-train's values and the rows of the tables."""

from dataclasses import replace

from prime_train.adapters.stored_json import load, readable
from prime_train.core.run import Lease, Run
from prime_train.core.wire import Heartbeat, Order


def run_of(text: str, version: int, next_check_s: int | None) -> Run:
    return replace(load(Run, text), version=version, next_check_s=next_check_s)


def lease_row(lease: Lease) -> tuple[str | int | None, ...]:
    """Return the lease's columns in the order of the statements that write and load leases."""
    heartbeat = lease.heartbeat.model_dump_json() if lease.heartbeat is not None else None
    counts = (lease.attempt, lease.open, lease.version, lease.seq, lease.heartbeat_s)
    return (*counts, heartbeat, lease.order.value, readable(lease.order_reason), lease.committed_step, lease.committed_key, lease.identity)


def lease_of(
    run_id: str,
    attempt: int,
    is_open: int,
    version: int,
    seq: int,
    heartbeat_s: int | None,
    heartbeat: str | None,
    order: str,
    order_reason: str,
    committed_step: int,
    committed_key: str,
    identity: str,
) -> Lease:
    for text in (order_reason, committed_key, identity):
        text.encode()  # a ValueError for bytes that are no text; the other columns are parsed
    last = Heartbeat.model_validate_json(heartbeat) if heartbeat is not None else None
    ordered = Order(order), order_reason
    return Lease(run_id, attempt, bool(is_open), version, seq, heartbeat_s, last, *ordered, committed_step, committed_key, identity)

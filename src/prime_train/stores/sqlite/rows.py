"""Conversion between prime-train's values and the rows of the tables."""

from dataclasses import replace

from prime_train.runs.run import Lease, Run
from prime_train.runs.store import LeaseStatus
from prime_train.runs.stored_json import load, readable
from prime_train.runs.wire import Heartbeat, Order


def run_of(text: str, version: int, next_check_s: int | None) -> Run:
    _check(version, int, "version")
    _check(next_check_s, int, "next_check_s", optional=True)
    return replace(load(Run, text), version=version, next_check_s=next_check_s)


def lease_row(lease: Lease) -> tuple[str | int | None, ...]:
    """Return the lease's columns in the order of the statements that write and load leases."""
    heartbeat = lease.heartbeat.model_dump_json() if lease.heartbeat is not None else None
    counts = (lease.attempt, lease.open, lease.version, lease.seq, lease.heartbeat_s)
    return (
        *counts,
        heartbeat,
        lease.order.value,
        readable(lease.order_reason),
        lease.committed_step,
        lease.committed_key,
        lease.identity,
    )


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
        _check(text, str, "order_reason, committed_key or identity")
        text.encode()  # a ValueError for bytes that are no text
    for number in (attempt, is_open, version, seq, committed_step):
        _check(number, int, "attempt, open, version, seq or committed_step")
    _check(heartbeat_s, int, "heartbeat_s", optional=True)
    last = Heartbeat.model_validate_json(heartbeat) if heartbeat is not None else None
    ordered = Order(order), order_reason
    return Lease(
        run_id,
        attempt,
        bool(is_open),
        version,
        seq,
        heartbeat_s,
        last,
        *ordered,
        committed_step,
        committed_key,
        identity,
    )


def lease_status(run_id: str, attempt: object, heartbeat_s: object, overdue_s: object) -> LeaseStatus:
    """Return what the row says of a lease. If it holds values of another kind, as a damaged file may, nothing
    is known of its heartbeats: one run's row must not keep a watcher from judging the others.
    """
    if isinstance(attempt, int) and isinstance(overdue_s, int) and isinstance(heartbeat_s, int | None):
        return LeaseStatus(run_id, attempt, heartbeat_s, overdue_s)
    return LeaseStatus(run_id, 0, None, 0)


def _check(value: object, kind: type, column: str, *, optional: bool = False) -> None:
    """Raise ValueError if the value is of another kind than its column: SQLite keeps a value that it cannot
    convert as it is.
    """
    if not isinstance(value, kind) and not (optional and value is None):
        raise ValueError(f"{column}: {type(value).__name__} in place of {kind.__name__}")

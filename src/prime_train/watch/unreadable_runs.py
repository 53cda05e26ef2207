"""Reports stored values that cannot be read. They are left as they are, and stop nothing else."""

from collections.abc import Sequence

from prime_train.runs.store import Store
from prime_train.runs.unreadable import Unreadable, UnreadableRecord, unreadable_alert
from prime_train.watch.context import Context, Failures
from prime_train.watch.outbox import enqueue

LOOK_S = 3600
"""Seconds between two looks at everything in the store. A run that a sweep needs and cannot read is reported
at once.
"""
ALERTS_MAX = 20


def look_for_unreadable(context: Context, now_s: int) -> None:
    """Look from time to time at everything in the store, and report what cannot be read."""
    known = context.unreadable
    if known.looked_s is None or not 0 <= now_s - known.looked_s < LOOK_S:
        found, known.looked_s = context.store.unreadable(), now_s
        known.run_ids.clear()
        _report(context, found, now_s)


def report_unread(context: Context, failures: Failures, now_s: int) -> tuple[str, ...]:
    """Report the runs that this sweep could not read, and return their ids."""
    found = [error.unreadable for error in failures.unread.values() if isinstance(error, UnreadableRecord)]
    _report(context, found, now_s)
    return tuple(one.run_id for one in found)


def is_stored(store: Store, run_id: str) -> bool:
    """Return whether the store has the run, be it readable or not."""
    try:
        return store.load(run_id) is not None
    except UnreadableRecord:
        return True


def _report(context: Context, found: Sequence[Unreadable], now_s: int) -> None:
    """Put an alert about each into the outbox, once; of many, about the first ones."""
    context.unreadable.run_ids.update(one.run_id for one in found if one.is_run)
    for one in found[:ALERTS_MAX]:
        alert = unreadable_alert(one, now_s)
        if (alert.key, "") not in context.notified:
            context.watched(one.run_id, "Unreadable", str(one))
            enqueue(context, alert)

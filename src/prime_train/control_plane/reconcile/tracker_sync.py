"""Checks that the tracker receives the metrics of healthy runs, and marks lost runs in the tracker. For other runs the tracker is read with
the rest of the evidence."""

from collections.abc import Iterable

from prime_train.control_plane.reconcile.context import Context, Failures
from prime_train.core.change import change
from prime_train.core.decide.tracker_alerts import can_be_untracked, decide_tracking, lost_attempt
from prime_train.ports import Marking

FOLLOW_S = 600
"""Seconds between two readings of the tracker for a run, because many runs mean many requests."""
MARK_S_MAX = 900
"""Seconds after the fence during which marking is tried; later W&B itself marks the run as crashed."""


def follow(context: Context, run_ids: Iterable[str], now_s: int, failures: Failures) -> None:
    """Notify people once if the tracker has lost their run. A tracker that cannot be read changes nothing; a save that fails is repeated at
    the next check."""
    for run_id in run_ids:
        if context.followed.get(run_id, 0) + FOLLOW_S > now_s:
            continue
        context.followed[run_id] = now_s
        record = failures.load(context.store, run_id)
        if record is None or not can_be_untracked(record.run, record.lease, now_s):
            continue
        with failures.collected(run_id):
            seen = context.tracker.look(record.run)
            decision = decide_tracking(record.run, record.lease, seen, now_s) if seen is not None else None
            if decision is not None:
                context.store.save(change(record.run, record.lease, decision, now_s))


def mark(context: Context, now_s: int, failures: Failures) -> None:
    """Mark the attempts that this process has fenced as failed in the tracker. A mark that fails now is tried again later, but not once the
    next attempt may write there. If the process ends before that, nothing important is left undone."""
    if not context.unmarked:
        return
    if not isinstance(context.tracker, Marking):
        context.unmarked.clear()
        return
    for (run_id, attempt), fenced_s in list(context.unmarked.items()):
        if now_s - fenced_s > MARK_S_MAX or _is_settled(context, context.tracker, run_id, attempt, failures):
            del context.unmarked[run_id, attempt]


def _is_settled(context: Context, tracker: Marking, run_id: str, attempt: int, failures: Failures) -> bool:
    record = failures.load(context.store, run_id)
    if record is None:
        return run_id not in failures.unread
    lost = lost_attempt(record.run, record.lease, attempt)
    return lost is None or tracker.mark_lost(record.run, lost)

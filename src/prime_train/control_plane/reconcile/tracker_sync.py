"""Whether the tracker still hears of runs that are well, and that it is told of those that were lost; of others it is asked with the rest
of the evidence."""

from collections.abc import Iterable

from prime_train.control_plane.reconcile.context import Context, Failures
from prime_train.core.change import change
from prime_train.core.decide.tracker_alerts import can_be_untracked, decide_tracking, lost_attempt
from prime_train.ports import Marking

FOLLOW_S = 600
"""How often one is asked: for many runs it is many questions."""
MARK_S_MAX = 900
"""So long after the fence it is tried; W&B itself then calls the run crashed."""


def follow(context: Context, run_ids: Iterable[str], now_s: int, failures: Failures) -> None:
    """Tells people once where one has lost its run. A tracker that cannot be asked says nothing; a save that is lost is made at the next
    look."""
    for run_id in run_ids:
        if context.followed.get(run_id, 0) + FOLLOW_S > now_s:
            continue
        context.followed[run_id] = now_s
        held = failures.load(context.store, run_id)
        if held is None or not can_be_untracked(held.run, held.lease, now_s):
            continue
        with failures.kept(run_id):
            seen = context.tracker.look(held.run)
            decision = decide_tracking(held.run, held.lease, seen, now_s) if seen is not None else None
            if decision is not None:
                context.store.save(change(held.run, held.lease, decision, now_s))


def mark(context: Context, now_s: int, failures: Failures) -> None:
    """Has the tracker say that the attempts which this process has fenced are no more. What cannot be said now is said at a later look,
    and not at all once the next attempt may write there. A process that ends before has left nothing undone that matters."""
    if not context.unmarked:
        return
    if not isinstance(context.tracker, Marking):
        context.unmarked.clear()
        return
    for (run_id, attempt), fenced_s in list(context.unmarked.items()):
        if now_s - fenced_s > MARK_S_MAX or _is_told(context, context.tracker, run_id, attempt, failures):
            del context.unmarked[run_id, attempt]


def _is_told(context: Context, tracker: Marking, run_id: str, attempt: int, failures: Failures) -> bool:
    held = failures.load(context.store, run_id)
    if held is None:
        return run_id not in failures.unread
    lost = lost_attempt(held.run, held.lease, attempt)
    return lost is None or tracker.mark_lost(held.run, lost)

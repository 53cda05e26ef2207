"""Checks that the tracker receives the metrics of healthy runs, and marks lost runs in the tracker. For other
runs the tracker is read with the rest of the evidence.
"""

from collections.abc import Iterable
from dataclasses import replace

from prime_train.runs.change import change
from prime_train.runs.decide.tracker_alerts import can_be_untracked, decide_tracking, lost_attempt
from prime_train.tracker.port import Marking
from prime_train.watch.context import Context, Failures
from prime_train.watch.means import SAVES_MAX, marks_elsewhere

FOLLOW_S = 600
"""Seconds between two readings of the tracker for a run, because many runs mean many requests."""
MARK_S_MAX = 900
"""Seconds after the fence during which marking is tried; later W&B itself marks the run as crashed."""


def follow(context: Context, run_ids: Iterable[str], now_s: int, failures: Failures) -> None:
    """Notify people once if the tracker has lost their run. A tracker that cannot be read changes nothing; a
    save that fails is repeated at the next check.
    """
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
    """Mark the attempts that this process has fenced as failed in the tracker, and those that other watchers
    have fenced that lack it. A mark that fails now is tried again later, but not once the next attempt may
    write there. If the process ends before that, nothing important is left undone.
    """
    if not isinstance(context.tracker, Marking):
        if context.unmarked and marks_elsewhere(context, now_s):
            _hand_over(context, now_s)
        context.unmarked.clear()
        return
    context.unmarked.update(_handed_over(context, now_s))
    for (run_id, attempt), fenced_s in list(context.unmarked.items()):
        if now_s - fenced_s > MARK_S_MAX or _is_settled(context, context.tracker, run_id, attempt, failures):
            del context.unmarked[run_id, attempt]
            context.marked[run_id, attempt] = fenced_s


def _hand_over(context: Context, now_s: int) -> None:
    """Leave the marks to a watcher that has the tracker, in the state that all watchers share."""
    handed = {f"{run_id}/{attempt}": fenced_s for (run_id, attempt), fenced_s in context.unmarked.items()}
    for _ in range(SAVES_MAX):
        watch = context.store.watch()
        kept = {name: fenced_s for name, fenced_s in watch.unmarked.items() if now_s - fenced_s <= MARK_S_MAX}
        after = replace(watch, version=watch.version + 1, unmarked={**kept, **handed})
        if context.store.save_watch(after, version=watch.version):
            break
    for run_id, attempt in context.unmarked:
        context.watched(
            run_id, "LeftToOthers", f"attempt {attempt} is marked as lost by a watcher that has the tracker"
        )


def _handed_over(context: Context, now_s: int) -> dict[tuple[str, int], int]:
    """Return what others have left to the watchers that have the tracker, and this process has not marked
    yet. It stays in the shared state until it is too old: marking twice changes nothing.
    """
    for attempt in [attempt for attempt, fenced_s in context.marked.items() if now_s - fenced_s > MARK_S_MAX]:
        del context.marked[attempt]
    named = {
        name.rpartition("/"): fenced_s
        for name, fenced_s in context.elsewhere.unmarked.items()
        if now_s - fenced_s <= MARK_S_MAX
    }
    found = {(run_id, int(attempt)): fenced_s for (run_id, _, attempt), fenced_s in named.items()}
    return {attempt: fenced_s for attempt, fenced_s in found.items() if attempt not in context.marked}


def _is_settled(context: Context, tracker: Marking, run_id: str, attempt: int, failures: Failures) -> bool:
    record = failures.load(context.store, run_id)
    if record is None:
        return run_id not in failures.unread
    lost = lost_attempt(record.run, record.lease, attempt)
    return lost is None or tracker.mark_lost(record.run, lost)

"""Changes that say in the history what was deleted of a run to make room."""

from dataclasses import replace

from prime_train.runs.change.parts import happened, saved
from prime_train.runs.deletions import NOTHING, in_words, plus, since
from prime_train.runs.run import Change, HistoryEvent, Lease, Run, with_attempt
from prime_train.runs.wire import Deletions

DELETED = "deleted"
"""The kind of the line in the history."""
BY_HAND = "a person pruned"


def see_deletions(run: Run, deleted: Deletions, now_s: int) -> Change:
    after, line = _with(run, deleted, now_s)
    return saved(replace(after, next_check_s=now_s), line)


def with_deletions(run: Run, lease: Lease, now_s: int) -> tuple[Run, HistoryEvent | None]:
    """Return the run with what the agent of its newest attempt has deleted, and the line that says what is
    new; None: nothing is.
    """
    attempt, heartbeat = run.current_attempt, lease.heartbeat
    if attempt is None or heartbeat is None or heartbeat.deleted is None or lease.attempt != attempt.number:
        return run, None
    return _with(run, heartbeat.deleted, now_s)


def pruned(run: Run, deleted: Deletions, now_s: int, *, cleanup_s: int | None) -> Change:
    """Record what a person deleted by hand. `cleanup_s`: when an ended run is cleaned up, and its tracker
    told.
    """
    after = replace(run, deleted=plus(run.deleted, deleted))
    if run.is_at_rest and cleanup_s is not None:
        after = replace(after, cleanup_s=cleanup_s, next_check_s=cleanup_s)
    line = _line(run, deleted, now_s)
    return saved(after, replace(line, text=f"{BY_HAND}: {line.text}"))


def _with(run: Run, deleted: Deletions, now_s: int) -> tuple[Run, HistoryEvent | None]:
    attempt = run.current_attempt
    assert attempt is not None
    fresh = since(attempt.deleted, deleted)
    if fresh == NOTHING:
        return run, None
    run = with_attempt(run, replace(attempt, deleted=deleted))
    return replace(run, deleted=plus(run.deleted, fresh), deleted_told_s=now_s), _line(run, fresh, now_s)


def _line(run: Run, deleted: Deletions, now_s: int) -> HistoryEvent:
    return happened(run, now_s, DELETED, in_words(deleted, run.spec.checkpoints), deleted.newest_step)

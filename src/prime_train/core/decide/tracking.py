"""A run that is well, and whose tracker is asked now and then whether it still hears of it.

A tracker is late by itself, and its silence never speaks against a run whose agent beats. But what is logged for hours and arrives nowhere
is missed by people, so they are told.
"""

from prime_train.core.amounts import span
from prime_train.core.decision import AllClear, Note
from prime_train.core.run import Lease, Run, RunState, Severity
from prime_train.core.verdict import TrackerSeen

TRACKER_LAG_S_MAX = 45 * 60
"""W&B has been seen 20 to 30 minutes behind runs that were well."""
UNTRACKED = "untracked"


def can_be_untracked(run: Run, lease: Lease, now_s: int) -> bool:
    """It trains, beats, and has done so for longer than a tracker is ever late: one that has heard nothing since has lost it."""
    attempt, beat_s = run.attempt, lease.beat_s
    if run.spec.wandb is None or run.state is not RunState.TRAINING or attempt is None or attempt.first_step_s is None:
        return False
    beats = lease.epoch == attempt.epoch and beat_s is not None and now_s - beat_s <= run.spec.health.overdue_s
    return beats and now_s - attempt.first_step_s > TRACKER_LAG_S_MAX


def decide_tracking(run: Run, lease: Lease, seen: TrackerSeen, now_s: int) -> Note | AllClear | None:
    """What there is to tell of a run that `can_be_untracked`; None: nothing new."""
    late_s, noted = now_s - seen.heard_s, run.noted_s(UNTRACKED) is not None
    if late_s > TRACKER_LAG_S_MAX and not noted:
        step = lease.beat.step if lease.beat is not None else 0
        text = (
            f"it trains at step {step:,}, and its tracker heard of it {span(late_s)} ago at step {seen.step:,}; look for wandb in its log"
        )
        return Note(UNTRACKED, Severity.WARNING, "its tracker has lost it", text)
    return AllClear((UNTRACKED,)) if late_s <= TRACKER_LAG_S_MAX and noted else None

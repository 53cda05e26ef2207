"""Alerts for a healthy run whose reports do not reach its tracker, and marking of lost runs in the tracker.

A tracker lags by itself, and its silence never counts against a run whose agent sends heartbeats. But people
miss metrics that are logged for hours and never arrive, so they are notified.
"""

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.decision import AllClear, Notify
from prime_train.runs.links import LAG_S_MAX
from prime_train.runs.run import Attempt, Lease, Run, RunState, Severity
from prime_train.runs.verdict import TrackerObserved
from prime_train.text.formatting import span

TRACKER_LAG_S_MAX = LAG_S_MAX
UNHEARD_S_MAX = 15 * 60
"""Seconds from the first step after which a run unknown to the tracker is reported. A tracker has a run as
soon as its trainer registers it; only later reports lag.
"""

_UNWRITTEN = frozenset(
    {
        RunState.QUEUED,
        RunState.LAUNCHING,
        RunState.BOOTING,
        RunState.FAILED,
        RunState.STOPPED,
        RunState.CANCELLED,
    }
)
"""States in which no process has a reason to write to the tracker."""


def can_be_untracked(run: Run, lease: Lease, now_s: int) -> bool:
    """Return whether the run has trained for so long that its reports should be in the tracker by now, and
    still sends heartbeats.
    """
    attempt, heartbeat_s = run.current_attempt, lease.heartbeat_s
    if (
        run.spec.wandb is None
        or run.state is not RunState.TRAINING
        or attempt is None
        or attempt.first_step_s is None
    ):
        return False
    heartbeats = (
        lease.attempt == attempt.number
        and heartbeat_s is not None
        and now_s - heartbeat_s <= run.spec.health.overdue_s
    )
    return heartbeats and now_s - attempt.first_step_s > UNHEARD_S_MAX


def decide_tracking(run: Run, lease: Lease, seen: TrackerObserved, now_s: int) -> Notify | AllClear | None:
    """Return the notice or all-clear for a run that `can_be_untracked`; None if nothing has changed."""
    late_s, noted = now_s - seen.received_s, run.noted_s(AlertKind.UNTRACKED) is not None
    if noted:
        return AllClear((AlertKind.UNTRACKED,)) if late_s <= TRACKER_LAG_S_MAX else None
    since_s = max(
        seen.received_s, run.current_attempt.first_step_s or 0 if run.current_attempt is not None else 0
    )
    if now_s - since_s <= (TRACKER_LAG_S_MAX if seen.received_s else UNHEARD_S_MAX):
        return None
    step = lease.heartbeat.step if lease.heartbeat is not None else 0
    if not seen.received_s:
        return Notify(
            AlertKind.UNTRACKED,
            Severity.WARNING,
            "the tracker has never received data from the run",
            f"the run trains at step {step:,}; check {UNHEARD_ADVICE}",
        )
    last_data = f"the tracker last received data {span(late_s)} ago, at step {seen.step:,}"
    return Notify(
        AlertKind.UNTRACKED,
        Severity.WARNING,
        "the tracker no longer receives data from the run",
        f"the run trains at step {step:,}, but {last_data}; {_LOST}",
    )


_LOST = "look for wandb in the trainer's log"
UNHEARD_ADVICE = (
    "that the trainer calls wandb.init and reads WANDB_RUN_ID from its environment, and that it writes to "
    "the config's wandb.entity"
)


def lost_attempt(run: Run, lease: Lease, number: int) -> Attempt | None:
    """Return the attempt of that number if it was fenced after its first heartbeat and no newer one may write
    to the tracker; else None.
    """
    attempt = next((a for a in run.attempts if a.number == number), None)
    if (
        attempt is None
        or attempt.fenced_s is None
        or attempt.first_heartbeat_s is None
        or run.spec.wandb is None
    ):
        return None
    is_replaced = run.state not in _UNWRITTEN or (lease.attempt > number and lease.heartbeat is not None)
    return None if is_replaced else attempt

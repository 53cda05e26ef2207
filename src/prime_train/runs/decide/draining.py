"""Decisions for a run that was ordered to flush and stop."""

from prime_train.runs.budget import CAUSES, limit_reason
from prime_train.runs.decide.money import REASONS
from prime_train.runs.decide.next_check import check_s
from prime_train.runs.decide.outcomes import action_after, finished, sick
from prime_train.runs.decision import Decision, Finish, Recover, Wait
from prime_train.runs.run import DrainReason, Run, RunState
from prime_train.runs.verdict import Finished, Gone, Healthy, Sick, Silent, Stalled, Unknown, Verdict
from prime_train.spec.causes import FLUSHED, Action, Cause

PREEMPTION_DRAIN_S = 120
"""Longest flush in seconds after a preemption notice, because the machine ends soon."""


def decide_draining(run: Run, verdict: Verdict, now_s: int) -> Decision:
    if run.drain is None or run.drain_s is None:
        raise ValueError(f"run {run.run_id} is draining without a reason")
    preempted = run.drain is DrainReason.PREEMPTION
    limit_s = min(PREEMPTION_DRAIN_S, run.spec.health.drain_s) if preempted else run.spec.health.drain_s
    over = now_s >= run.drain_s + limit_s
    match verdict:
        case Finished():
            return finished(verdict)
        case Sick(exited=True) | Gone():
            return _stopped_gracefully(run, verdict)
        case Silent():
            ended = over or preempted
        case Healthy() | Stalled() | Sick():
            ended = over
        case Unknown():
            ended = over and not preempted
    if ended:
        return _stopped_gracefully(run, verdict)
    return Wait(
        now_s + check_s(run) if over else min(now_s + check_s(run), run.drain_s + limit_s), "flushing"
    )


def _stopped_gracefully(run: Run, verdict: Verdict) -> Decision:
    if run.drain in (DrainReason.PREEMPTION, DrainReason.FUNDS, DrainReason.MOVE):
        was_requested = isinstance(verdict, Sick) and verdict.cause in (
            Cause.STOPPED_EARLY,
            Cause.UPLOAD_FAILED,
        )
        if (
            isinstance(verdict, Sick)
            and not was_requested
            and action_after(run, verdict).action is Action.STOP
        ):
            return sick(run, verdict)
        if run.drain is DrainReason.FUNDS:
            return Recover(Cause.NO_FUNDS, "stopped before the wallet was empty")
        if run.drain is DrainReason.MOVE:
            return Recover(
                Cause.MOVED, "left for a machine on which the rest of the run is expected to cost less"
            )
        return Recover(Cause.PREEMPTED, "preempted after a notice")
    flushed = isinstance(verdict, Sick) and verdict.cause in FLUSHED
    limit = REASONS.get(run.drain) if run.drain is not None else None
    cause = CAUSES[limit] if limit is not None else Cause.STOPPED_GRACEFULLY
    why = limit_reason(run, limit) if limit is not None else "stopped by the user"
    return Finish(
        RunState.STOPPED, cause, f"{why}; {'flushed' if flushed else 'not everything was uploaded in time'}"
    )

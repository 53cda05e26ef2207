"""Decisions that follow from a verdict in any state."""

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.decide.next_check import check_s
from prime_train.runs.decision import Decision, Finish, Notify, Recover, Wait
from prime_train.runs.next_action import Ending, Next, next_action, stops_on
from prime_train.runs.run import Run, RunState, Severity
from prime_train.runs.verdict import Finished, Sick, Unknown
from prime_train.spec.causes import POLICY, Action, Cause
from prime_train.spec.choices import OnDivergence


def finished(verdict: Finished) -> Finish:
    note = f"; its process then ended: {verdict.note}" if verdict.note else ""
    return Finish(RunState.SUCCEEDED, Cause.FINISHED, f"finished at step {verdict.step}{note}")


def sick(run: Run, verdict: Sick) -> Decision:
    policy, health = POLICY[verdict.cause], run.spec.health
    if verdict.cause is Cause.NOT_FINITE and health.on_divergence is OnDivergence.ROLLBACK:
        if run.rollbacks < health.rollback_times:
            return Recover(verdict.cause, verdict.detail or policy.title)
        times = f"{run.rollbacks} time{'' if run.rollbacks == 1 else 's'}"
        return Finish(
            RunState.FAILED,
            verdict.cause,
            f"{policy.title} again, after the run went back {times}: {verdict.detail}",
        )
    if verdict.is_checkpoint and not stops_on(run.spec.trainer, verdict.code):
        # The next attempt restores the checkpoint before it, so what would follow otherwise does not.
        return Recover(verdict.cause, verdict.detail or policy.title)
    after = action_after(run, verdict)
    if after.action is Action.STOP:
        state = RunState.STOPPED if policy.needs_person else RunState.FAILED
        said = f"{verdict.detail}; {after.why}" if after.why else verdict.detail
        return Finish(state, verdict.cause, f"{policy.title}: {said}. {policy.advice}".strip())
    return Recover(
        verdict.cause,
        verdict.detail or policy.title,
        after.action if after.action is not policy.action else None,
    )


def action_after(run: Run, verdict: Sick) -> Next:
    """Return what follows from the end of the run's newest attempt, or from the problem that its agent
    reports.
    """
    attempt = run.current_attempt
    restored = attempt.resumed_step if attempt is not None else 0
    ending = Ending(
        verdict.cause,
        verdict.detail,
        verdict.action,
        verdict.code,
        step=verdict.step,
        restored_step=restored,
        has_gained=verdict.durable_step > restored,
    )
    return next_action(run.spec.trainer, ending, run.attempts[:-1])


def unknown(run: Run, verdict: Unknown, now_s: int) -> Decision:
    kind = AlertKind.BLIND if verdict.breaker else AlertKind.UNKNOWN
    if run.noted_s(kind) is None:
        title = (
            "the control plane cannot judge the runs" if verdict.breaker else "the provider does not answer"
        )
        # Of an event that keeps several runs from being judged, the sweep that finds it notifies people once,
        # and lists the silent runs. A run that was never heard is not among those, and a run with an alert
        # address of its own is notified there.
        was_heard = run.state not in (RunState.LAUNCHING, RunState.BOOTING)
        is_told = not verdict.breaker or not was_heard or run.spec.alerts.webhook is not None
        return Notify(
            kind,
            Severity.WARNING if is_told else Severity.QUIET,
            title,
            f"{verdict.why}; no machine is terminated",
        )
    return Wait(now_s + check_s(run), verdict.why)

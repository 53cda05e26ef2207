"""Decisions that follow from a verdict in any state."""

from prime_train.core.alert_kinds import AlertKind
from prime_train.core.causes import POLICY, Cause, Retry
from prime_train.core.decide.next_check import check_s
from prime_train.core.decision import Decision, Finish, Notify, Recover, Wait
from prime_train.core.run import Run, RunState, Severity
from prime_train.core.spec_choices import OnDivergence
from prime_train.core.verdict import Sick, Unknown


def sick(run: Run, verdict: Sick) -> Decision:
    policy, health = POLICY[verdict.cause], run.spec.health
    if verdict.cause is Cause.NOT_FINITE and health.on_divergence is OnDivergence.ROLLBACK:
        if run.rollbacks < health.rollback_times:
            return Recover(verdict.cause, verdict.detail or policy.title)
        times = f"{run.rollbacks} time{'' if run.rollbacks == 1 else 's'}"
        return Finish(RunState.FAILED, verdict.cause, f"{policy.title} again, after the run went back {times}: {verdict.detail}")
    if policy.retry is Retry.NEVER and not verdict.is_checkpoint:
        state = RunState.STOPPED if policy.needs_person else RunState.FAILED
        return Finish(state, verdict.cause, f"{policy.title}: {verdict.detail}. {policy.advice}".strip())
    return Recover(verdict.cause, verdict.detail or policy.title)


def unknown(run: Run, verdict: Unknown, now_s: int) -> Decision:
    kind = AlertKind.BLIND if verdict.breaker else AlertKind.UNKNOWN
    if run.noted_s(kind) is None:
        title = "the control plane cannot judge the runs" if verdict.breaker else "the provider does not answer"
        # Of an event that keeps several runs from being judged, the sweep that finds it notifies people once, and lists the silent runs.
        # A run that was never heard is not among those, and a run with an alert address of its own is notified there.
        was_heard = run.state not in (RunState.LAUNCHING, RunState.BOOTING)
        is_told = not verdict.breaker or not was_heard or run.spec.alerts.webhook is not None
        return Notify(kind, Severity.WARNING if is_told else Severity.QUIET, title, f"{verdict.why}; no machine is terminated")
    return Wait(now_s + check_s(run), verdict.why)

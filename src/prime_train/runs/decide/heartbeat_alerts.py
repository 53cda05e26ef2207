"""Alerts about what the heartbeat of a healthy machine says, as `runs/alert_kinds` lists them: people are
notified once while it lasts, whatever is done about it later, and get the all-clear when it is over."""

from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.decision import AllClear, Notify
from prime_train.runs.run import Run, Severity
from prime_train.runs.wire import Heartbeat
from prime_train.spec.choices import OnDivergence


def of_heartbeat(run: Run, heartbeat: Heartbeat, now_s: int) -> Notify | AllClear | None:
    """Return the next notice about a problem that the heartbeat shows, or the all-clear when one is over;
    else None."""
    for kind in AlertKind:
        policy, noted_s = policy_of(kind), run.noted_s(kind)
        problem = policy.problem(heartbeat) if policy.problem is not None else None
        if problem and noted_s is None:
            follows = f"; {_what_follows(run)}. Checkpoints from before are kept" if kind is AlertKind.NOT_FINITE else ""
            return Notify(kind, Severity.WARNING, policy.title, f"{problem}{follows}")
        if problem == "" and noted_s is not None and now_s >= noted_s + policy.stays_s:
            return AllClear((kind,))
    return None


def _what_follows(run: Run) -> str:
    """Return what is done about a loss that is not finite."""
    health = run.spec.health
    action, after = health.on_divergence, f"after {health.not_finite_steps} such steps in a row (health.not_finite_steps)"
    if action is OnDivergence.ROLLBACK and run.rollbacks >= health.rollback_times:
        after += f", because it went back {run.rollbacks} time{'' if run.rollbacks == 1 else 's'} (health.rollback_times)"
        action = OnDivergence.STOP
    return {
        OnDivergence.ALERT: "the run goes on, because health.on_divergence is alert",
        OnDivergence.STOP: f"the run is stopped {after}",
        OnDivergence.ROLLBACK: f"the run goes back to a checkpoint with finite figures {after}",
    }[action]

"""Decisions about figures that are not finite: people are notified at the first such step, whatever is done about it later."""

from prime_train.core.alert_kinds import AlertKind
from prime_train.core.decision import AllClear, Notify
from prime_train.core.run import Run, Severity
from prime_train.core.spec_choices import OnDivergence
from prime_train.core.verdict import Healthy

CLEAR_AFTER_S = 600
"""Seconds for which the notice stays at least, so that a loss that is finite in every other step is told once and not with each step."""


def of_figures(run: Run, verdict: Healthy, now_s: int) -> Notify | AllClear | None:
    """Return the notice that the loss is not finite, given once, or the all-clear when it is finite again; else None."""
    noted_s = run.noted_s(AlertKind.NOT_FINITE)
    if verdict.not_finite_since is None:
        return AllClear((AlertKind.NOT_FINITE,)) if noted_s is not None and now_s >= noted_s + CLEAR_AFTER_S else None
    if noted_s is not None:
        return None
    health = run.spec.health
    after = f"after {health.not_finite_steps} such steps in a row (health.not_finite_steps)"
    if health.on_divergence is OnDivergence.ROLLBACK and run.rollbacks >= health.rollback_times:
        after += f", because it went back {run.rollbacks} time{'' if run.rollbacks == 1 else 's'} (health.rollback_times)"
        health = health.model_copy(update={"on_divergence": OnDivergence.STOP})
    then = {
        OnDivergence.ALERT: "the run goes on, because health.on_divergence is alert",
        OnDivergence.STOP: f"the run is stopped {after}",
        OnDivergence.ROLLBACK: f"the run goes back to a checkpoint with finite figures {after}",
    }[health.on_divergence]
    what = f"the loss, or the norm of its gradients, has been NaN or infinite since step {verdict.not_finite_since}"
    text = f"{what}; {then}. Checkpoints from before are kept"
    return Notify(AlertKind.NOT_FINITE, Severity.WARNING, "the loss is not finite", text)

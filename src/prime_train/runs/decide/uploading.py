"""Decisions about checkpoints and outputs that do not become durable: people are notified, and a machine with
the only copy is kept at limited cost.
"""

from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.budget import end_usd
from prime_train.runs.decision import Finish, Notify
from prime_train.runs.run import Attempt, Run, RunState, Severity
from prime_train.runs.verdict import Healthy, Verdict
from prime_train.runs.wire import Heartbeat
from prime_train.spec.causes import Cause
from prime_train.text.formatting import usd

UPLOAD_SHARE = 0.1
"""Share of the budget that keeping a machine may cost if the spec sets no limit."""


def of_kept_machine(run: Run, attempt: Attempt, heartbeat: Heartbeat) -> Notify | None:
    """Return the notice that a machine is kept because it has the only copy of checkpoints or outputs, given
    once; else None."""
    problem = heartbeat.unsaved or heartbeat.upload_problem
    if problem and run.state is RunState.UPLOADING and run.noted_s(AlertKind.KEPT) is None:
        text = (
            f"{problem}; {attempt.pod_id or 'the machine'} has the only copy and is "
            "kept "
            f"{_until(run, attempt)}"
        )
        return Notify(
            AlertKind.KEPT, Severity.ERROR, "a machine is kept until its uploads are complete", text
        )
    return None


def _until(run: Run, attempt: Attempt) -> str:
    if attempt.offer.usd_per_hour <= 0:
        return "until the upload is complete or the run is stopped"
    return (
        "until the upload is complete, the run is stopped, or keeping the machine has cost "
        f"{usd(upload_limit_usd(run))} (budget.upload_usd)"
    )


def given_up(run: Run, verdict: Verdict, now_s: int) -> Finish | None:
    """Return the end of a run whose last checkpoint or outputs could not be uploaded within the allowed cost;
    else None. The run has succeeded if all is durable and only the agent lacks the confirmation, because
    responses do not reach it.
    """
    left_usd, spent_usd = upload_left_usd(run, now_s), ledger.spent(run, now_s).usd
    if left_usd is None or (left_usd > 0 and spent_usd < end_usd(run)):
        return None
    if isinstance(verdict, Healthy) and verdict.is_durable:
        return Finish(RunState.SUCCEEDED, Cause.FINISHED, f"finished at step {verdict.step}")
    limit = (
        f"{usd(upload_limit_usd(run))} (budget.upload_usd)"
        if left_usd <= 0
        else f"the budget of {usd(run.spec.budget.usd)}"
    )
    unsaved = (
        verdict.heartbeat.unsaved if isinstance(verdict, Healthy) and verdict.heartbeat is not None else ""
    )
    why = f": {unsaved}" if unsaved else ""
    return Finish(
        RunState.FAILED,
        Cause.UPLOAD_FAILED,
        f"the last checkpoint or outputs could not be uploaded for {limit}{why}",
    )


def upload_limit_usd(run: Run) -> float:
    """Return the dollars that keeping a machine for its last uploads may cost."""
    budget = run.spec.budget
    return budget.upload_usd if budget.upload_usd is not None else budget.usd * UPLOAD_SHARE


def upload_left_usd(run: Run, now_s: int) -> float | None:
    """Return the dollars left of `upload_limit_usd`; None if no machine is kept for an upload."""
    attempt = run.current_attempt
    if run.state is not RunState.UPLOADING or attempt is None or attempt.uploading_s is None:
        return None
    return upload_limit_usd(run) - max(0, now_s - attempt.uploading_s) * attempt.offer.usd_per_hour / 3600

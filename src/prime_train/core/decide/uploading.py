"""Decisions about checkpoints that do not become durable: people are notified, and a machine with the only copy is kept at limited cost."""

from prime_train.core import ledger
from prime_train.core.causes import Cause
from prime_train.core.decision import AllClear, Finish, Note
from prime_train.core.run import Attempt, Run, RunState, Severity
from prime_train.core.text.formatting import usd
from prime_train.core.verdict import Healthy, Verdict

UPLOADS, KEPT = "uploads", "kept"
"""Kinds of notices: uploads are failing, and a machine is kept because of that."""

UPLOAD_SHARE = 0.1
"""Share of the budget that keeping a machine may cost if the spec sets no limit."""


def of_uploads(run: Run, attempt: Attempt, verdict: Healthy) -> Note | AllClear | None:
    """Return the notice about upload trouble of an attempt with heartbeats, given once, or the all-clear when it is over; else None."""
    if not verdict.upload_trouble:
        return AllClear((UPLOADS,)) if run.noted_s(UPLOADS) is not None else None
    if run.noted_s(UPLOADS) is None:
        return Note(UPLOADS, Severity.WARNING, "checkpoints do not become durable", verdict.upload_trouble)
    if run.state is RunState.UPLOADING and run.noted_s(KEPT) is None:
        text = f"{verdict.upload_trouble}; {attempt.pod_id or 'the machine'} has the only copy, and is kept {_until(run, attempt)}"
        return Note(KEPT, Severity.ERROR, "a machine is kept for its last checkpoint", text)
    return None


def _until(run: Run, attempt: Attempt) -> str:
    if attempt.offer.usd_per_hour <= 0:
        return "until the checkpoint is uploaded or the run is stopped"
    return f"until the checkpoint is uploaded, the run is stopped, or that has cost {usd(upload_limit_usd(run))} (budget.upload_usd)"


def given_up(run: Run, verdict: Verdict, now_s: int) -> Finish | None:
    """Return the end of a run whose last checkpoint could not be uploaded within the allowed cost; else None. The run has succeeded if the
    checkpoint is committed and only the agent lacks the confirmation, because responses do not reach it."""
    left_usd, spent_usd = upload_left_usd(run, now_s), ledger.spent(run, now_s).usd
    if left_usd is None or (left_usd > 0 and spent_usd < run.spec.budget.usd):
        return None
    if isinstance(verdict, Healthy) and verdict.is_durable:
        return Finish(RunState.SUCCEEDED, Cause.FINISHED, f"finished at step {verdict.step}")
    limit = f"{usd(upload_limit_usd(run))} (budget.upload_usd)" if left_usd <= 0 else f"the budget of {usd(run.spec.budget.usd)}"
    return Finish(RunState.FAILED, Cause.UPLOAD_FAILED, f"the last checkpoint could not be uploaded for {limit}")


def upload_limit_usd(run: Run) -> float:
    """Return the dollars that keeping a machine for its last checkpoint may cost."""
    budget = run.spec.budget
    return budget.upload_usd if budget.upload_usd is not None else budget.usd * UPLOAD_SHARE


def upload_left_usd(run: Run, now_s: int) -> float | None:
    """Return the dollars left of that limit; None if no machine is kept for an upload."""
    attempt = run.current_attempt
    if run.state is not RunState.UPLOADING or attempt is None or attempt.uploading_s is None:
        return None
    return upload_limit_usd(run) - max(0, now_s - attempt.uploading_s) * attempt.offer.usd_per_hour / 3600

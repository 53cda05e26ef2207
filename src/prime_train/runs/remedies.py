"""What a user can do about a run that has ended."""

from datetime import UTC, datetime
from math import ceil

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.runs.budget import LIMITS, Limit, least, used_up
from prime_train.runs.run import Run
from prime_train.spec.causes import MENDED_IN_CONFIG, Cause

_SEEN_IN_CHECKPOINTS = frozenset({Cause.RESTORE_FAILED, Cause.CHECKPOINTS_DAMAGED, Cause.BAD_CHECKPOINT})


def needed(run: Run, limit: Limit, now_s: int) -> Option:
    """Return the option of a resume that raises this limit to a little more than the run needs to
    continue.
    """
    at_least = least(run, limit, now_s)
    match limit:
        case Limit.USD:
            return Option(SettingAdvice.USD, f"{_more(at_least):g}")
        case Limit.HOURS:
            return Option(SettingAdvice.HOURS, f"{_more(at_least):g}")
        case Limit.DEADLINE:
            return Option(
                SettingAdvice.DEADLINE,
                f"{datetime.fromtimestamp((at_least // 3600 + 2) * 3600, UTC):%Y-%m-%dT%H:%MZ}",
            )


def _more(amount: float) -> float:
    """Return the amount plus a fifth, rounded up to two decimals."""
    return max(0.01, ceil(amount * 120) / 100)


def go_on(run: Run, now_s: int) -> Call:
    """Return the operation that resumes an ended run."""
    limits = dict.fromkeys((*used_up(run, now_s), *([LIMITS[run.cause]] if run.cause in LIMITS else [])))
    options = [needed(run, limit, now_s) for limit in limits]
    options += [Option(SettingAdvice.CONFIG, "FILE")] if run.cause in MENDED_IN_CONFIG else []
    return Call(Operation.RESUME, run.run_id, tuple(options))


def remedy(run: Run, cause: Cause, text: str) -> Advice:
    """Return the advice on a cause, `text`, with the operation that shows more of it."""
    if cause not in _SEEN_IN_CHECKPOINTS:
        return Advice(text) if text else Advice()
    return Advice(f"{text.rstrip('.')}: ", Call(Operation.CHECKPOINTS, run.run_id), ".")

"""The commands with which a user can resume a run that has ended."""

from datetime import UTC, datetime
from math import ceil

from prime_train.core.budget import LIMITS, Limit, least, used_up
from prime_train.core.causes import MENDED_IN_CONFIG
from prime_train.core.run import Run


def needed(run: Run, limit: Limit, now_s: int) -> str:
    """Return the option of `resume` that raises this limit to a little more than the minimum with which the run can continue."""
    at_least = least(run, limit, now_s)
    match limit:
        case Limit.USD:
            return f"--usd {_more(at_least):g}"
        case Limit.HOURS:
            return f"--hours {_more(at_least):g}"
        case Limit.DEADLINE:
            return f"--deadline {datetime.fromtimestamp((at_least // 3600 + 2) * 3600, UTC):%Y-%m-%dT%H:%MZ}"


def _more(amount: float) -> float:
    """Return the amount plus a fifth, rounded up to two decimals."""
    return max(0.01, ceil(amount * 120) / 100)


def go_on(run: Run, now_s: int) -> str:
    """Return the command that resumes an ended run."""
    limits = dict.fromkeys((*used_up(run, now_s), *([LIMITS[run.cause]] if run.cause in LIMITS else [])))
    options = [needed(run, limit, now_s) for limit in limits]
    options += ["--config FILE"] if run.cause in MENDED_IN_CONFIG else []
    return " ".join([f"prime-train resume {run.run_id}", *options])

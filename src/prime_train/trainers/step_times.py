"""Step durations of any trainer, computed from timestamps in its progress rows and not broken down into parts
of a step.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from prime_train.trainers.log_lines import clean
from prime_train.trainers.progress import LineReader

STAMPS = ("time", "timestamp", "_timestamp", "wall_time", "ts")
"""Keys under which rows give the time of writing, in seconds since 1970."""
STAMP_MIN_S = 10**9
WARM_UP = 5


@dataclass(frozen=True)
class StepTimes:
    """Seconds of single steps: median and 90th percentile."""

    steps: int
    median_s: float
    p90_s: float


def step_times(lines: Iterable[str], reader: LineReader, *, steps: int) -> StepTimes | None:
    """Return the durations of the last `steps` steps, leaving out the first `WARM_UP` steps of the log.

    Return None if too few consecutive rows have both a step and a timestamp.
    """
    durations: list[float] = []
    before: tuple[int, float] | None = None
    for line in lines:
        made, at_s = reader.read(line), _stamp_s(line)
        if made is None or at_s is None:
            continue
        if before is not None and made.step > before[0] and at_s >= before[1]:
            each_s = (at_s - before[1]) / (made.step - before[0])
            durations += [each_s] * min(made.step - before[0], steps)
        before = (made.step, at_s)
    ranked = sorted(durations[WARM_UP:][-steps:])
    return (
        StepTimes(len(ranked), median(ranked), ranked[math.ceil(0.9 * len(ranked)) - 1]) if ranked else None
    )


def _stamp_s(line: str) -> float | None:
    try:
        row = json.loads(clean(line))
    except (ValueError, RecursionError):
        return None
    values = (row.get(name) for name in STAMPS) if isinstance(row, dict) else ()
    return next(
        (
            float(v)
            for v in values
            if isinstance(v, int | float) and math.isfinite(v) and STAMP_MIN_S <= v < 10 * STAMP_MIN_S
        ),
        None,
    )

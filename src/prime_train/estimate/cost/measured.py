"""Measures the step time in earlier runs of the same config."""

from collections.abc import Iterable

from prime_train.core.run import Attempt, Run
from prime_train.core.spec import RunSpec
from prime_train.estimate.cost.bill import STEP_SPREAD, Known, StepTime
from prime_train.estimate.cost.duration import Between

STEPS_MIN = 5
"""Minimum number of steps for a reliable mean."""


def measured(runs: Iterable[Run], spec: RunSpec) -> StepTime | None:
    """Return the step time of the first run (newest first) with the same trainer, GPU kinds and GPU count that made enough steps; None if
    there is no such run."""
    same = (run for run in runs if run.spec.trainer == spec.trainer and _machine(run.spec) == _machine(spec))
    return next((found for found in map(step_of, same) if found is not None), None)


def step_of(run: Run) -> StepTime | None:
    """Return the mean step time over all attempts, saves included; None below `STEPS_MIN` steps. The first step of each attempt is not
    counted, because time is measured from its end."""
    attempts = [(attempt, _steps(attempt), _seconds(attempt)) for attempt in run.attempts]
    steps = sum(steps for _, steps, seconds in attempts if steps > 0 and seconds > 0)
    seconds = sum(seconds for _, steps, seconds in attempts if steps > 0 and seconds > 0)
    if steps < STEPS_MIN:
        return None
    mean = seconds / steps
    return StepTime(Between(mean, mean) * STEP_SPREAD, Known.MEASURED, f"{run.run_id}, {steps:,} steps")


def _machine(spec: RunSpec) -> tuple[tuple[str, ...], int]:
    return spec.hardware.gpus, spec.hardware.count


def _steps(attempt: Attempt) -> int:
    return attempt.last_step - attempt.resumed_step - 1


def _seconds(attempt: Attempt) -> int:
    if attempt.first_step_s is None or attempt.last_sign_s is None:
        return 0
    return attempt.last_sign_s - attempt.first_step_s

"""Measures the step time in earlier runs of the same config."""

from collections.abc import Iterable
from dataclasses import replace

from prime_train.core.offers import variant_of
from prime_train.core.run import Attempt, Run
from prime_train.core.spec import RunSpec
from prime_train.estimate.cost.bill import STEP_SPREAD, Known, StepTime
from prime_train.estimate.cost.duration import Between

STEPS_MIN = 5
"""Minimum number of steps for a reliable mean."""


def measured(runs: Iterable[Run], spec: RunSpec) -> StepTime | None:
    """Return the step time of the first run (newest first) with the same trainer, GPU kinds and GPU count that made enough steps; None if
    there is no such run. Of a run with variants, the attempts count whose variant is the same."""
    found = (step_of(replace(run, attempts=_same(run, spec))) for run in runs)
    return next((step for step in found if step is not None), None)


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


def _same(run: Run, spec: RunSpec) -> tuple[Attempt, ...]:
    """Return the attempts with the same trainer and machine."""
    hardware = run.spec.hardware
    if not hardware.variants:
        return run.attempts if run.spec.trainer == spec.trainer and _machine(run.spec) == _machine(spec) else ()
    variants = [run.spec.variant(number) for number in range(len(hardware.variants))]
    same = [at for at, one in enumerate(variants) if one.trainer == spec.trainer and one.hardware.count == spec.hardware.count]
    kinds = spec.hardware.gpus
    return tuple(one for one in run.attempts if variant_of(one.offer, hardware) in same and (not kinds or one.offer.gpu in kinds))


def _machine(spec: RunSpec) -> tuple[tuple[str, ...], int]:
    return spec.hardware.gpus, spec.hardware.count


def _steps(attempt: Attempt) -> int:
    return attempt.last_step - attempt.resumed_step - 1


def _seconds(attempt: Attempt) -> int:
    if attempt.first_step_s is None or attempt.last_sign_s is None:
        return 0
    return attempt.last_sign_s - attempt.first_step_s

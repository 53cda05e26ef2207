"""Summary of the trainer's progress: the newest step, the durations of steps, and consecutive zero
rewards.
"""

import math
from dataclasses import dataclass, replace

from prime_train.trainers.of_spec import Progress

LEFT_OUT = 5
"""Number of first steps whose durations are ignored, because they include compilation and warm-up."""

DURATIONS_MAX = 200
SLOW_SHARE = 0.95


@dataclass(frozen=True)
class Steps:
    """Progress of this attempt. `step` is the newest step, 0 before the first; `rose_s` the time at which it
    last rose, or at which training started.
    """

    step: int = 0
    rose_s: float | None = None
    rises: int = 0
    first_s: float | None = None
    """When the first step of this attempt was seen; `rises` steps were made since."""
    readings: int = 0
    """How often `step` rose since, each time by one or more."""
    squares_s2: float = 0.0
    """The sum over these readings of the squared seconds since the previous one, divided by the steps made in
    them.
    """
    durations_s: tuple[float, ...] = ()
    """Durations of single steps, newest last, without the first `LEFT_OUT`."""
    zeros: int = 0
    """Consecutive steps whose reward was exactly 0."""
    zero_step: int = -1
    """The last step counted in `zeros`, so that a step reported twice counts once."""
    loss: float | None = None
    """The last loss that was reported; None also if it was not finite."""
    reward: float | None = None
    learning_rate: float | None = None
    not_finite_since: int | None = None
    """The step from which on no reported loss was finite; None: the last one was, or none was reported."""
    not_finite_step: int = 0
    """The newest step since then with a reported loss."""
    finite_step: int = 0
    """The newest step with a finite loss; 0: none."""


def started(now_s: float) -> Steps:
    """Return the progress at the start of training."""
    return Steps(rose_s=now_s)


def seen(steps: Steps, rows: tuple[Progress, ...], now_s: float) -> Steps:
    """Return the summary after these rows. Rows read together share the time since the last rise equally."""
    highest = max((row.step for row in rows), default=0)
    if highest > steps.step:
        steps = _risen(steps, highest, now_s)
    for row in rows:
        steps = _rewarded(_lost(steps, row), row)
    return steps


def not_finite_steps(steps: Steps) -> int:
    """Return for how many steps in a row no loss was finite, up to the newest one with a loss; 0 before a
    second step was reported with one, because a single one may be an accident of one batch.
    """
    since, newest = steps.not_finite_since, steps.not_finite_step
    return newest - since + 1 if since is not None and newest > since else 0


def slow_s(steps: Steps) -> float | None:
    """Return the 95th percentile of the step durations in seconds; None before there are any."""
    ranked = sorted(steps.durations_s)
    return round(ranked[math.ceil(SLOW_SHARE * len(ranked)) - 1], 3) if ranked else None


def timed_s(steps: Steps) -> float | None:
    """Return the seconds in which the steps after the first one were made, saves included; None before there
    are any.
    """
    if steps.first_s is None or steps.rose_s is None or not steps.rises:
        return None
    return round(steps.rose_s - steps.first_s, 3)


def timed_spread_s(steps: Steps) -> float | None:
    """Return the standard deviation of the steps after the first one in seconds, also if several were seen at
    a time; None before they were seen twice.
    """
    total_s = timed_s(steps)
    if total_s is None or steps.readings < 2:
        return None
    return round(math.sqrt(max(0.0, steps.squares_s2 - total_s**2 / steps.rises) / (steps.readings - 1)), 3)


def _risen(steps: Steps, step: int, now_s: float) -> Steps:
    """Record a new step. The time until an attempt's first step is no step duration, because it includes the
    trainer's start.
    """
    if steps.step == 0 or steps.rose_s is None:
        return replace(steps, step=step, rose_s=now_s, first_s=now_s)
    made = step - steps.step
    counted = max(0, min(steps.rises + made - LEFT_OUT, made, DURATIONS_MAX))
    each_s = (now_s - steps.rose_s) / made
    durations_s = (*steps.durations_s, *([each_s] * counted))[-DURATIONS_MAX:]
    steps = replace(steps, readings=steps.readings + 1, squares_s2=steps.squares_s2 + made * each_s**2)
    return replace(steps, step=step, rose_s=now_s, rises=steps.rises + made, durations_s=durations_s)


def _lost(steps: Steps, row: Progress) -> Steps:
    """Record loss and learning rate. A value that is not finite replaces a finite one, which would be shown
    as if it were current.
    """
    if row.learning_rate is not None:
        steps = replace(steps, learning_rate=row.learning_rate)
    if "loss" in row.not_finite:
        since = steps.not_finite_since if steps.not_finite_since is not None else row.step
        newest = max(steps.not_finite_step, row.step)
        return replace(steps, loss=None, not_finite_since=min(since, row.step), not_finite_step=newest)
    if row.loss is None:
        return steps
    return replace(
        steps,
        loss=row.loss,
        not_finite_since=None,
        not_finite_step=0,
        finite_step=max(steps.finite_step, row.step),
    )


def _rewarded(steps: Steps, row: Progress) -> Steps:
    if "reward" in row.not_finite:
        return replace(steps, reward=None, zeros=0, zero_step=-1)
    if row.reward is None:
        return steps
    if row.reward != 0:
        return replace(steps, reward=row.reward, zeros=0, zero_step=-1)
    again = row.step == steps.zero_step
    return replace(steps, reward=row.reward, zeros=steps.zeros + (not again), zero_step=row.step)

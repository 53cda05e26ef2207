"""The expected hours of a run on machines that can be lost, in a closed formula.

The model. Losses are memoryless, `losses_per_h` in each hour in which a machine is rented, whatever it does.
A run needs `work_h` hours of training and saves every `interval_h`. A checkpoint counts once it is uploaded,
`upload_h` after its save. A loss is noticed after `detection_h`; then another machine has to start, which
takes `restart_h` in which it can be lost as well, and trains from the newest checkpoint that counts.

So the run is a chain of stretches, each of which must be passed without a loss. From one durable checkpoint
to the next that is one interval of length x. If it is lost, the next machine has to start, to repeat the
`upload_h` of training that was not durable, and then the whole stretch: y = restart + upload + x hours
without a loss. Tried again and again, which is a geometric series, that takes

    F(y) = (e^(losses_per_h y) - 1) (1 / losses_per_h + detection)

hours on average (J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
FGCS 22(3), 2006, with the detection added). With a first try that needs only z hours, because the machine is
already there, the expected hours are

    E(z, y) = (1 - e^(-losses_per_h z)) (1 / losses_per_h + detection) e^(losses_per_h y)

The first stretch has z = start + interval + upload, every later one z = x. Their sum is exact: it includes
losses during starts, losses in a row, and a last interval that is shorter. The number of losses is
losses_per_h times the expected hours in which a machine was rented.
"""

import math
from dataclasses import dataclass

LOSSES_PER_H_MIN = 1e-9
"""Rarer losses count as none: one in 114,000 years."""
EXPONENT_MAX = 500.0
"""The largest `losses_per_h` times hours of a stretch for which hours are calculated; a run with longer
stretches would never end.
"""


@dataclass(frozen=True)
class Course:
    """How a run goes on one kind of machine, in hours. `start_h`: from the order of the first machine to its
    first step; `restart_h`: the same of each later one, with the restore of a checkpoint; `detection_h`: from
    a loss to the next order; `interval_h`: training from one save to the next; `upload_h`: from a save until
    it is durable. Raises ValueError if one is negative or not finite.
    """

    work_h: float
    losses_per_h: float
    start_h: float = 0.0
    restart_h: float = 0.0
    detection_h: float = 0.0
    interval_h: float = 0.5
    upload_h: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value}; it must be finite and not negative")


@dataclass(frozen=True)
class Expectation:
    """Expected hours from the first order to the last durable step, how many machines are lost on the way,
    and the hours that each loss adds. `hours` is infinite if the run is not expected to end.
    """

    hours: float
    losses: float
    hours_per_loss: float


def expected(course: Course) -> Expectation:
    """Return the expected hours and losses of the course."""
    without_h = course.start_h + course.work_h + course.upload_h
    if course.losses_per_h < LOSSES_PER_H_MIN:
        return Expectation(without_h, 0.0, 0.0)
    first_h = min(course.work_h, course.interval_h) if course.interval_h > 0 else course.work_h
    again_h = course.restart_h + course.upload_h
    if (
        course.losses_per_h * (max(course.start_h, course.restart_h) + course.upload_h + first_h)
        > EXPONENT_MAX
    ):
        return Expectation(math.inf, math.inf, math.inf)
    hours = _stretch_h(course, course.start_h + first_h + course.upload_h, again_h + first_h)
    if course.work_h > first_h:
        whole, last_h = divmod(course.work_h - first_h, course.interval_h)
        hours += whole * _stretch_h(course, course.interval_h, again_h + course.interval_h)
        hours += _stretch_h(course, last_h, again_h + last_h)
    losses = hours * course.losses_per_h / (1 + course.losses_per_h * course.detection_h)
    return Expectation(hours, losses, max(0.0, hours - without_h) / losses if losses else 0.0)


def _stretch_h(course: Course, first_h: float, again_h: float) -> float:
    """Return the expected hours until a stretch was passed: `first_h` without a loss on the present machine,
    or else `again_h` without a loss on a later one.
    """
    rate = course.losses_per_h
    return -math.expm1(-rate * first_h) * (1 / rate + course.detection_h) * math.exp(rate * again_h)

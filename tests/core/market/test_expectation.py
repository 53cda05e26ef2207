"""The expected hours of a run whose machines are lost now and then: the closed formula against a simulation,
and what it must obey.
"""

import math
import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.market.expectation import Course, expected
from tests.core.given import PROPERTY

COURSE = Course(10.0, 0.2, start_h=0.2, restart_h=0.3, detection_h=0.05, interval_h=0.5, upload_h=0.1)
COURSES = st.builds(
    Course,
    st.floats(0.01, 100),
    st.floats(0.0, 2.0),
    start_h=st.floats(0, 0.5),
    restart_h=st.floats(0.5, 1),
    detection_h=st.floats(0, 1),
    interval_h=st.floats(0.01, 3),
    upload_h=st.floats(0, 0.5),
)


def simulated(course: Course, chance: random.Random) -> tuple[float, int]:
    """Return the hours and losses of one run, told as it happens: a machine starts, trains from the
    newest durable checkpoint, and is lost at a random moment."""
    hours, losses, durable_h, is_first = 0.0, 0, 0.0, True
    while True:
        life_h = chance.expovariate(course.losses_per_h) if course.losses_per_h else math.inf
        start_h = course.start_h if is_first else course.restart_h
        needed_h = start_h + course.work_h - durable_h + course.upload_h
        if life_h >= needed_h:
            return hours + needed_h, losses
        is_first, hours, losses = False, hours + life_h + course.detection_h, losses + 1
        uploaded_h = durable_h + life_h - start_h - course.upload_h
        durable_h = max(durable_h, math.floor(uploaded_h / course.interval_h) * course.interval_h)


@pytest.mark.parametrize(
    "course",
    [
        COURSE,
        replace(COURSE, losses_per_h=2.0),
        replace(COURSE, losses_per_h=1.0, work_h=0.3),
        replace(COURSE, losses_per_h=0.8, work_h=7.3, interval_h=1.7, upload_h=0.0),
        replace(COURSE, losses_per_h=1.5, start_h=1.0, restart_h=0.1, detection_h=0.5, work_h=3.0),
    ],
)
def test_the_formula_agrees_with_simulated_runs(course: Course) -> None:
    chance, count = random.Random(15), 3000
    runs = [simulated(course, chance) for _ in range(count)]
    means = [statistics.fmean(column) for column in zip(*runs, strict=True)]
    spreads = [statistics.stdev(column) / math.sqrt(count) for column in zip(*runs, strict=True)]
    found = expected(course)
    assert found.hours == pytest.approx(means[0], abs=4 * spreads[0])
    assert found.losses == pytest.approx(means[1], abs=4 * spreads[1])


def test_a_machine_that_is_never_lost_takes_start_training_and_upload() -> None:
    found = expected(replace(COURSE, losses_per_h=0.0))
    assert found.hours == pytest.approx(10.3)
    assert found.losses == 0
    assert found.hours_per_loss == 0


def test_rare_losses_cost_half_an_interval_and_the_way_to_the_next_step() -> None:
    found = expected(replace(COURSE, losses_per_h=1e-6))
    assert found.hours_per_loss == pytest.approx(0.25 + 0.1 + 0.3 + 0.05, rel=0.05)


def test_a_run_that_cannot_get_through_one_interval_has_no_end() -> None:
    assert math.isinf(expected(replace(COURSE, losses_per_h=5000.0)).hours)


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_hours_that_make_no_sense_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="restart_h is"):
        replace(COURSE, restart_h=value)


@PROPERTY
@given(
    course=COURSES,
    more=st.floats(0.001, 1),
    name=st.sampled_from(["work_h", "losses_per_h", "restart_h", "detection_h", "upload_h"]),
)
def test_more_work_losses_or_time_to_restart_never_make_a_run_shorter(
    course: Course, more: float, name: str
) -> None:
    longer = replace(course, **{name: getattr(course, name) + more})
    assert expected(longer).hours >= expected(course).hours * (1 - 1e-9)


@PROPERTY
@given(course=COURSES)
def test_losses_only_add_time(course: Course) -> None:
    found = expected(course)
    assert found.hours >= (course.start_h + course.work_h + course.upload_h) * (1 - 1e-9)
    assert found.losses >= 0

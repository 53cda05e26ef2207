"""Durations of steps, from the rows of any trainer."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.spec.spec import ProgressSpec
from prime_train.trainers.progress import reader_for
from prime_train.trainers.step_times import WARM_UP, StepTimes, step_times

T0_S = 1_700_000_000.0


def measured(lines: Sequence[str], *, steps: int = 50) -> StepTimes | None:
    return step_times(lines, reader_for(ProgressSpec()), steps=steps)


def row(step: int, at_s: float, name: str = "time") -> str:
    return json.dumps({"step": step, "loss": 0.5, name: T0_S + at_s})


@pytest.mark.parametrize("name", ["time", "timestamp", "_timestamp"])
def test_the_time_between_two_rows_is_that_of_a_step(name: str) -> None:
    lines = [row(step, 2.0 * step, name) for step in range(1, 31)]
    assert measured(lines) == StepTimes(29 - WARM_UP, 2.0, 2.0)


def test_rows_of_every_tenth_step_tell_of_single_steps() -> None:
    found = measured([row(step, step) for step in range(0, 200, 10)])
    assert found is not None
    assert found.median_s == pytest.approx(1.0)


def test_a_restart_goes_back_and_is_no_step() -> None:
    before, after = (
        [row(step, step) for step in range(1, 31)],
        [row(step, 1000 + step) for step in range(10, 31)],
    )
    found = measured([*before, *after])
    assert found is not None
    assert found.p90_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["garbage"],
        ['{"step": 1}', '{"step": 2}'],
        [row(1, 1)],
        ['{"step": 1, "time": 12.5}', '{"step": 2, "time": 13.5}'],
    ],
)
def test_without_two_rows_with_a_time_nothing_is_known(lines: Sequence[str]) -> None:
    assert measured(lines) is None


@given(
    st.lists(
        st.one_of(st.text(max_size=30), st.builds(row, st.integers(0, 99), st.floats(0, 1e6))), max_size=40
    )
)
def test_whatever_the_lines_are_there_is_an_answer(lines: Sequence[str]) -> None:
    measured(lines)

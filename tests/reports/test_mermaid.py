"""Step over time as GitHub draws it: the line rises, falls back at a resume, and can always be drawn."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from prime_train.github.pull_request import SAMPLES, chart
from prime_train.runs.run import Attempt, Run, RunState
from tests import builders as b

HOUR_S = 3600


def attempt(attempt: int, start_h: float, end_h: float | None, first: int, last: int) -> Attempt:
    start_s, end_s = b.T0_S + round(start_h * HOUR_S), b.T0_S + round((end_h or 0) * HOUR_S)
    made = b.new_attempt(
        attempt,
        RunState.QUEUED,
        resumed_step=first,
        last_step=last,
        launched_s=start_s - 60,
        first_step_s=start_s,
    )
    if end_h is None:
        return replace(made, last_sign_s=None, fenced_s=None, cause=None, ended_s=None)
    return replace(made, last_sign_s=end_s, fenced_s=end_s + 60, ended_s=end_s + 90)


def run(*attempts: Attempt, steps: int | None = 1000) -> Run:
    return b.run(
        RunState.TRAINING, attempt=len(attempts), attempts=attempts, spec=b.spec(trainer={"steps": steps})
    )


def line(lines: list[str]) -> list[int]:
    (found,) = (text for text in lines if text.strip().startswith("line "))
    return [int(number) for number in re.findall(r"\d+", found)]


def axis(lines: list[str], name: str) -> str:
    (found,) = (text.strip() for text in lines if text.strip().startswith(name))
    return found


def test_a_resume_falls_back_to_where_it_resumed() -> None:
    drawn = chart(run(attempt(1, 0.5, 4, 0, 400), attempt(2, 5, None, 300, 0)), 700, b.T0_S + 10 * HOUR_S)
    heights = line(drawn)
    assert (len(heights), heights[0], heights[-1]) == (SAMPLES, 0, 700)
    assert [place for place, (before, after) in enumerate(pairwise(heights)) if after < before] == [
        SAMPLES // 2 - 1
    ]
    assert 390 <= max(heights[: SAMPLES // 2]) <= 400
    assert axis(drawn, "x-axis") == 'x-axis "hours since the launch" 0 --> 10.0'
    assert axis(drawn, "y-axis") == 'y-axis "step" 0 --> 1000'


def test_the_block_is_closed_and_names_its_kind() -> None:
    drawn = chart(run(attempt(1, 0.1, None, 0, 5)), 10, b.T0_S + HOUR_S // 2)
    assert (drawn[0], drawn[-1], drawn.count("xychart-beta")) == ("```mermaid", "```", 1)
    assert axis(drawn, "x-axis") == 'x-axis "minutes since the launch" 0 --> 30.0'


@pytest.mark.parametrize(
    ("of", "step", "now_s"),
    [
        (run(), 0, b.T0_S + 100),
        (run(attempt(1, 0.1, None, 0, 0)), 0, b.T0_S + HOUR_S),
        (run(attempt(1, 0.1, 0.2, 0, 0)), 0, b.T0_S + HOUR_S),
        (run(attempt(1, 0.1, None, 0, 10)), 10, b.T0_S),
        (run(attempt(1, 0.1, None, 0, 10)), 10, b.T0_S - 5),
    ],
)
def test_before_there_is_a_step_nothing_is_drawn(of: Run, step: int, now_s: int) -> None:
    assert chart(of, step, now_s) == []


@pytest.mark.parametrize("steps", [None, 1, 2**53])
def test_the_line_never_leaves_the_chart(steps: int | None) -> None:
    of = run(attempt(1, 0.1, 2, 0, 50), attempt(2, 1, None, 60, 55), steps=steps)
    drawn = chart(of, 70, b.T0_S + 3 * HOUR_S)
    top = int(axis(drawn, "y-axis").rpartition(" ")[2])
    assert all(0 <= height <= top for height in line(drawn))


def test_a_run_of_many_attempts_is_drawn_in_one_line() -> None:
    many = [attempt(n, n, n + 0.9, n * 10, n * 10 + 12) for n in range(1, 65)]
    drawn = chart(replace(run(*many), state=RunState.QUEUED), 652, b.T0_S + 66 * HOUR_S)
    assert (len(drawn), len(line(drawn))) == (7, SAMPLES)
    assert line(drawn)[-1] == 652

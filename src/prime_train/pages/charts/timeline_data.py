"""The data of the timeline chart, derived from the run, its history and the observed steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from prime_train.runs.run import Attempt, HistoryEvent, Run
from prime_train.runs.run import RunState as S
from prime_train.spec.causes import POLICY

TAKEN = "taken"
"""The kind of a history event that gives the exact moment at which a machine was preempted; only the program
that preempts it, such as the demo, can record that.
"""
TAKEN_AT = "at_s"
"""The key in the data of a `TAKEN` event for its moment, in seconds with fractions."""


@dataclass(frozen=True)
class Point:
    """An observed step. `at_s` may have fractions."""

    at_s: float
    step: int
    attempt: int


@dataclass(frozen=True)
class MachineLoss:
    """The loss of a machine and the attempt that followed. Times are seconds of the control plane's clock;
    None means that it did not happen.
    """

    attempt: int
    lost_s: float
    fenced_s: float
    trains_s: float | None
    """When the next attempt began to make steps."""
    again_s: float | None
    """When the next attempt reached the best step made before it."""
    lost_step: int
    resumed_step: int
    why: str


def span_s(run: Run, points: Sequence[Point], now_s: float) -> tuple[float, float]:
    """Return the first and last second of the chart, at least one second apart."""
    ends = [point.at_s for point in points] + [
        float(a.ended_s) for a in run.attempts if a.ended_s is not None
    ]
    end_s = max([*ends, float(run.ended_s if run.ended_s is not None else now_s)])
    return float(run.created_s), max(end_s, run.created_s + 1.0)


def end_s(run: Run, history: Sequence[HistoryEvent], points: Sequence[Point]) -> float:
    """Return the second of the newest known event or observation; it serves as `now` for a chart, because
    this module reads no clock.
    """
    known = [float(run.created_s), *(float(line.at_s) for line in history), *(point.at_s for point in points)]
    known += [float(s) for a in run.attempts for s in (a.launched_s, a.ended_s) if s is not None]
    return max(known)


def top_step(run: Run, points: Sequence[Point]) -> int:
    """Return the highest step of the chart, at least 1: the target, or a lower step if less than a third of
    the target has been reached.
    """
    reached = max([1, run.best_step, *(point.step for point in points)])
    target = run.spec.trainer.steps or 0
    return max(reached, target) if reached * 3 >= target else reached


def line_of(attempt: Attempt, points: Sequence[Point]) -> list[Point]:
    """Return the steps of one attempt in order of time, starting where it resumed."""
    mine = sorted(
        (p for p in points if p.attempt == attempt.number and p.step >= attempt.resumed_step),
        key=lambda p: p.at_s,
    )
    if attempt.first_step_s is not None and (not mine or mine[0].step > attempt.resumed_step):
        first_s = min([float(attempt.first_step_s), *(p.at_s for p in mine)])
        mine.insert(0, Point(first_s, attempt.resumed_step, attempt.number))
    rising: list[Point] = []
    for point in mine:
        if not rising or point.step >= rising[-1].step:
            rising.append(point)
    return rising


def reached_s(line: Sequence[Point], step: int) -> float | None:
    """Return when the line reached `step`, interpolated between its points; None if it did not."""
    for before, after in pairwise(line):
        if before.step <= step <= after.step:
            share = (step - before.step) / (after.step - before.step) if after.step > before.step else 0.0
            return before.at_s + share * (after.at_s - before.at_s)
    return line[0].at_s if line and line[0].step == step else None


def losses(run: Run, history: Sequence[HistoryEvent], points: Sequence[Point]) -> list[MachineLoss]:
    """Return the loss of every attempt that was followed by another one or ended without success."""
    taken = {
        line.attempt: float(line.data.get(TAKEN_AT, line.at_s)) for line in history if line.kind == TAKEN
    }
    followers = {a.number: b for a, b in pairwise(run.attempts)}
    ended = [
        a
        for a in run.attempts
        if a.fenced_s is not None and (a.number in followers or run.state is not S.SUCCEEDED)
    ]
    return [_loss(a, followers.get(a.number), taken.get(a.number), points) for a in ended]


def _loss(
    attempt: Attempt, follower: Attempt | None, taken_s: float | None, points: Sequence[Point]
) -> MachineLoss:
    assert attempt.fenced_s is not None
    line = line_of(attempt, points)
    sign_s = float(attempt.last_sign_s if attempt.last_sign_s is not None else attempt.fenced_s)
    lost_s = taken_s if taken_s is not None else max(sign_s, line[-1].at_s if line else sign_s)
    next_line = line_of(follower, points) if follower is not None else []
    trains_s = next_line[0].at_s if next_line else None
    why = POLICY[attempt.cause].title if attempt.cause is not None else "ended"
    return MachineLoss(
        attempt=attempt.number,
        lost_s=lost_s,
        fenced_s=max(lost_s, float(attempt.fenced_s)),
        trains_s=trains_s,
        again_s=reached_s(next_line, follower.best_step_before) if follower is not None else None,
        lost_step=max(attempt.last_step, line[-1].step if line else 0),
        resumed_step=follower.resumed_step if follower is not None else attempt.durable_step,
        why=why,
    )

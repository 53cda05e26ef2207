"""The step over time as one line of bar characters, for media without images."""

from itertools import pairwise

from prime_train.runs.figures import figures
from prime_train.runs.run import Lease, Run

BARS = "▁▂▃▄▅▆▇█"
BAR_COUNT = 24


def sparkline(run: Run, lease: Lease | None, now_s: int) -> str:
    """Return the line from the launch to the run's end, or to `now_s`; empty before the first step."""
    run, end_s = figures(run, lease, now_s).run, run.ended_s if run.ended_s is not None else now_s
    top = max((attempt.last_step for attempt in run.attempts), default=0)
    if top <= 0 or end_s <= run.created_s:
        return ""
    points = _points(run, end_s)
    places = [run.created_s + (end_s - run.created_s) * (place + 1) / BAR_COUNT for place in range(BAR_COUNT)]
    return "".join(
        BARS[min(len(BARS) - 1, round(_at(points, at_s) / top * (len(BARS) - 1)))] for at_s in places
    )


def _points(run: Run, end_s: int) -> list[tuple[int, int]]:
    """Return pairs of second and step in order of time: each attempt from the step it resumed to its last
    step.
    """
    points = [(run.created_s, 0)]
    for attempt in run.attempts:
        if attempt.first_step_s is None:
            continue
        open_now = attempt is run.current_attempt and attempt.fenced_s is None
        last_s = end_s if open_now else attempt.last_sign_s or attempt.fenced_s or attempt.first_step_s
        points += [(attempt.first_step_s, attempt.resumed_step), (last_s, attempt.last_step)]
    return sorted(points)


def _at(points: list[tuple[int, int]], at_s: float) -> float:
    for (before_s, before), (after_s, after) in pairwise(points):
        if before_s <= at_s < after_s:
            # No step is made between two attempts, so the line stays at the last step until the next attempt
            # resumes from an earlier one.
            return (
                before + (after - before) * (at_s - before_s) / (after_s - before_s)
                if after > before
                else before
            )
    return points[-1][1]

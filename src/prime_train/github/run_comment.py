"""The step over time as a mermaid chart, which GitHub renders in public and private repositories alike."""

from itertools import pairwise

from prime_train.runs.run import Attempt, Run

SAMPLES = 40
HOUR_S = 3600
LOOK = '%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#1f6feb"}}, "xyChart": {"width": 720, "height": 260}}}%%'
"""Theme of the chart: a blue that is visible on white and on black, unlike the theme's own colour."""


def chart(run: Run, step: int, now_s: int) -> list[str]:
    """Return the lines of a mermaid block, or an empty list while no step was made."""
    start_s, end_s = run.created_s, run.ended_s if run.ended_s is not None else now_s
    corners = _corners(run, step, end_s)
    if end_s <= start_s or len(corners) < 2 or corners[-1][1] == 0:
        return []
    places = [start_s + (end_s - start_s) * place / (SAMPLES - 1) for place in range(SAMPLES)]
    line = ", ".join(str(round(_at(corners, at_s))) for at_s in places)
    top = max(run.spec.trainer.steps or 0, *(height for _, height in corners))
    hours = (end_s - start_s) / HOUR_S
    unit, length = ("hours", hours) if hours >= 1 else ("minutes", hours * 60)
    return [
        "```mermaid",
        LOOK,
        "xychart-beta",
        f'    x-axis "{unit} since the launch" 0 --> {max(length, 0.1):.1f}',
        f'    y-axis "step" 0 --> {max(top, 1)}',
        f"    line [{line}]",
        "```",
    ]


def _corners(run: Run, step: int, end_s: int) -> list[tuple[float, int]]:
    """Return pairs of second and step in order of time: each attempt from the step it resumed to its last step."""
    found: list[tuple[float, int]] = [(run.created_s, 0)]
    for attempt in run.attempts:
        if attempt.first_step_s is not None:
            found += [(attempt.first_step_s, attempt.resumed_step), _end(attempt, run, step, end_s)]
    return sorted(found, key=lambda corner: corner[0])


def _end(attempt: Attempt, run: Run, step: int, end_s: int) -> tuple[float, int]:
    if attempt is run.current_attempt and attempt.fenced_s is None:
        return end_s, max(step, attempt.last_step)
    last_s = attempt.last_sign_s if attempt.last_sign_s is not None else attempt.fenced_s
    return max(last_s or 0, attempt.first_step_s or 0), attempt.last_step


def _at(corners: list[tuple[float, int]], at_s: float) -> float:
    for (before_s, before), (after_s, after) in pairwise(corners):
        if before_s <= at_s < after_s:
            rises = after > before
            return before + (after - before) * (at_s - before_s) / (after_s - before_s) if rises else before
    return corners[-1][1]

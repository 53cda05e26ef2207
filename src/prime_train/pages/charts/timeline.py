"""Draws the timeline chart: steps over time at the top, the ledger as a bar below."""

from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.pages.charts import timeline_data
from prime_train.pages.charts.svg import (
    PART_COLOURS,
    colour_of,
    number,
    seconds,
    svg_image,
    tag,
    text,
    ticks,
    width_of,
)
from prime_train.pages.charts.timeline_data import MachineLoss, Point
from prime_train.runs.figures import LedgerPart, RunFigures, figures
from prime_train.runs.run import Attempt, HistoryEvent, Run
from prime_train.text.formatting import usd

WIDTH, NARROW = 1160, 400
"""Widths of the chart in pixels at which its text is as large as the text of the page around it."""
LEFT, RIGHT = 72, 24
LANES_MAX = 4
LANE = 19
TITLE = 32
PLOT_HEIGHT = 340
POINTS_MAX = 2000
BAR_HEIGHT = 132
_BAR = 30

LEGEND_MAX = 4
DETAILED_MAX = 3
BANDS = {"idle": "no training", "again": "repeated steps"}
_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800)
_STEPS = tuple(unit * 10**power for power in range(12) for unit in (1, 2, 5))


@dataclass(frozen=True)
class Scale:
    """Converts seconds and steps to coordinates in the chart."""

    start_s: float
    end_s: float
    step_max: int
    top: float
    width: float = WIDTH

    def x(self, at_s: float) -> float:
        inside = min(max(at_s, self.start_s), self.end_s)
        return LEFT + (inside - self.start_s) / (self.end_s - self.start_s) * (self.width - LEFT - RIGHT)

    def y(self, step: float) -> float:
        return self.top + PLOT_HEIGHT * (1 - step / (self.step_max * 1.06))

    @property
    def right(self) -> float:
        return self.width - RIGHT

    @property
    def bottom(self) -> float:
        return self.top + PLOT_HEIGHT


@dataclass(frozen=True)
class Mark:
    at_s: float
    words: str


def timeline_svg(
    run: Run,
    history: Sequence[HistoryEvent],
    points: Sequence[Point],
    commits: Sequence[Point] = (),
    *,
    titled: bool = True,
    ledger: bool = True,
    now_s: float | None = None,
    width: int = WIDTH,
) -> str:
    """Return one self-contained SVG. `points` are the observed steps, `commits` the checkpoints at the time
    they were committed. `ledger`: draw the bar of the paid time below. `now_s`: the end of the time axis for
    a run that goes on; None means the newest known second. `width`: in pixels.
    """
    now_s = timeline_data.end_s(run, history, [*points, *commits]) if now_s is None else now_s
    now = figures(run, None, int(now_s))
    start_s, end_s = timeline_data.span_s(run, [*points, *commits], now_s)
    lost = timeline_data.losses(run, history, points)
    legend, legend_height = _legend(
        run, (TITLE if titled else 0) + 24, width, has_commits=bool(commits), has_losses=bool(lost)
    )
    marks_top = (TITLE if titled else 0) + 30 + legend_height
    lanes = _lanes(_marks(lost), Scale(start_s, end_s, 1, top=0, width=width))
    lane_count = max((lane for _, lane in lanes if lane is not None), default=-1) + 1
    scale = Scale(
        start_s, end_s, timeline_data.top_step(run, points), top=marks_top + LANE * lane_count, width=width
    )
    drawn = [_title(now) if titled else "", legend]
    drawn += [_grid(scale), *(_shade(loss, scale) for loss in lost)]
    drawn += [_mark(mark, lane, marks_top, scale) for mark, lane in lanes]
    drawn += [_words(mark, lane, marks_top, scale) for mark, lane in lanes if lane is not None]
    drawn += [_jump(loss, scale) for loss in lost]
    by_attempt = {attempt.number: timeline_data.line_of(attempt, points) for attempt in run.attempts}
    drawn += [_steps(attempt, line, scale) for attempt, line in by_attempt.items()]
    drawn += [_dot(commit, by_attempt, scale) for commit in commits[:POINTS_MAX]]
    height = scale.bottom + 48
    if ledger:
        drawn.append(ledger_bar(now, left=LEFT, top=scale.bottom + 66, width=scale.right - LEFT))
        height = scale.bottom + 66 + BAR_HEIGHT
    ground = tag("rect", kind="bg", x=0, y=0, width=width, height=height, rx=10)
    return svg_image(ground + "".join(drawn), width, height, f"Steps of run {run.run_id} over time")


# ------------------------------------------------------------------------------------------------------------
# frame


def _title(now: RunFigures) -> str:
    count = now.attempts
    summary = f"{now.run.state.value} · {count} attempt{'' if count == 1 else 's'} · step {now.best_step:,}"
    words = tag("tspan", now.run.run_id, kind="title") + tag("tspan", summary, kind="soft", dx=14)
    return tag("text", words, x=LEFT, y=32)


def _legend(run: Run, y: float, width: float, *, has_commits: bool, has_losses: bool) -> tuple[str, float]:
    """Return the legend, on as many lines as it needs, and its height in pixels."""
    entries = [
        (_stroke(a), f"attempt {a.number} ({_kind(a)}, {usd(a.offer.usd_per_hour)}/h)")
        for a in run.attempts[-LEGEND_MAX:]
    ]
    if has_commits:
        entries.append((tag("circle", kind="dot", cx=10, cy=-4, r=5, fill="#626d80"), "durable checkpoint"))
    if has_losses:
        entries += [(tag("rect", kind=k, x=2, y=-11, width=16, height=14, rx=2), w) for k, w in BANDS.items()]
    start = float(LEFT) if width > NARROW else 8.0
    x, line, parts = start, 0, []
    for swatch, words in entries:
        wide = 26 + width_of(words, size=12)
        if x > start and x + wide > width:
            x, line = start, line + 1
        parts.append(
            tag(
                "g",
                swatch + text(26, 0, words, kind="small"),
                transform=f"translate({number(x)} {number(y + line * LANE)})",
            )
        )
        x += wide + 16
    return "".join(parts), 24.0 + line * LANE


def _stroke(attempt: Attempt) -> str:
    return tag("line", x1=0, y1=-4, x2=20, y2=-4, stroke=colour_of(attempt.number), stroke_width=3)


def _kind(attempt: Attempt) -> str:
    return "spot" if attempt.offer.spot else "on-demand"


def _grid(scale: Scale) -> str:
    parts = [tag("rect", kind="panel", x=LEFT, y=scale.top, width=scale.right - LEFT, height=PLOT_HEIGHT)]
    for step in ticks(0, scale.step_max, _STEPS, 6):
        y = scale.y(step)
        parts.append(tag("line", kind="grid", x1=LEFT, y1=y, x2=scale.right, y2=y))
        parts.append(text(LEFT - 10, y + 4, f"{int(step):,}", kind="soft small", anchor="end"))
    for at_s in ticks(0, scale.end_s - scale.start_s, _TIMES, 12 if scale.width > NARROW else 5):
        x = scale.x(scale.start_s + at_s)
        parts.append(tag("line", kind="axis", x1=x, y1=scale.bottom, x2=x, y2=scale.bottom + 5))
        parts.append(text(x, scale.bottom + 20, _clock(at_s), kind="soft small", anchor="middle"))
    parts.append(tag("line", kind="axis", x1=LEFT, y1=scale.bottom, x2=scale.right, y2=scale.bottom))
    middle = scale.top + PLOT_HEIGHT / 2
    parts.append(
        text(20, middle, "step", kind="soft", anchor="middle", transform=f"rotate(-90 20 {number(middle)})")
    )
    parts.append(
        text(
            (LEFT + scale.right) / 2, scale.bottom + 40, "time since the launch", kind="soft", anchor="middle"
        )
    )
    return "".join(parts)


def _clock(at_s: float) -> str:
    if at_s < 120:
        return f"{int(at_s)} s"
    return f"{number(at_s / 60)} min" if at_s < 7200 else f"{number(at_s / 3600)} h"


# ------------------------------------------------------------------------------------------------------------
# curves


def _steps(attempt: int, line: Sequence[Point], scale: Scale) -> str:
    if not line:
        return ""
    stride = max(1, len(line) // POINTS_MAX)
    kept = [*line[:-1:stride], line[-1]]
    path = " ".join(f"{number(scale.x(p.at_s))},{number(scale.y(p.step))}" for p in kept)
    hint = tag("title", f"attempt {attempt}: steps {line[0].step} to {line[-1].step}")
    return tag(
        "polyline", hint, kind="steps", points=path, stroke=colour_of(attempt), data_attempt=str(attempt)
    )


def _dot(commit: Point, lines: dict[int, list[Point]], scale: Scale) -> str:
    # The bucket reports whole seconds; without this, a checkpoint could be drawn before its step.
    at_s = max(
        commit.at_s, timeline_data.reached_s(lines.get(commit.attempt, []), commit.step) or commit.at_s
    )
    hint = tag("title", f"step {commit.step} durable, saved by attempt {commit.attempt}")
    return tag(
        "circle",
        hint,
        kind="dot",
        cx=scale.x(at_s),
        cy=scale.y(commit.step),
        r=5,
        fill=colour_of(commit.attempt),
    )


def _shade(loss: MachineLoss, scale: Scale) -> str:
    until_s = loss.trains_s if loss.trains_s is not None else scale.end_s
    parts = [_band("idle", loss.lost_s, until_s, scale)]
    if loss.trains_s is not None and loss.again_s is not None:
        parts.append(_band("again", loss.trains_s, loss.again_s, scale))
    return "".join(parts)


def _band(kind: str, start_s: float, end_s: float, scale: Scale) -> str:
    x, end = scale.x(start_s), scale.x(end_s)
    hint = tag("title", f"{BANDS[kind]}: {seconds(max(0.0, end_s - start_s))}")
    return (
        tag("rect", hint, kind=kind, x=x, y=scale.top, width=max(0.0, end - x), height=PLOT_HEIGHT)
        if end > x
        else ""
    )


def _jump(loss: MachineLoss, scale: Scale) -> str:
    """Return the line from the last step of the lost machine down to the checkpoint that the next attempt
    resumes from.
    """
    if loss.trains_s is None:
        return ""
    x, then, high, low = (
        scale.x(loss.lost_s),
        scale.x(loss.trains_s),
        scale.y(loss.lost_step),
        scale.y(loss.resumed_step),
    )
    path = f"M{number(x)},{number(high)} L{number(x)},{number(low)} L{number(then)},{number(low)}"
    return tag("path", kind="jump", d=path)


# ------------------------------------------------------------------------------------------------------------
# marks


def _marks(losses: Sequence[MachineLoss]) -> list[Mark]:
    """Return marks for the loss, fence and restore of each loss; above `DETAILED_MAX` losses only one mark
    each, as the labels would not fit.
    """
    if len(losses) > DETAILED_MAX:
        return [
            Mark(loss.lost_s, f"lost at {loss.lost_step}, resumed at {loss.resumed_step}") for loss in losses
        ]
    marks = []
    for loss in losses:
        marks += [
            Mark(loss.lost_s, f"machine lost at step {loss.lost_step}"),
            Mark(loss.fenced_s, f"fenced: {loss.why}"),
        ]
        if loss.trains_s is not None:
            start = (
                f"restored: resumed from step {loss.resumed_step}"
                if loss.resumed_step
                else "started over: no checkpoint"
            )
            marks.append(Mark(loss.trains_s, start))
    return sorted(marks, key=lambda mark: mark.at_s)


def _lanes(marks: Sequence[Mark], scale: Scale) -> list[tuple[Mark, int | None]]:
    """Return each mark with the row of its label, so that labels do not overlap; None as the row means that
    the mark has no label.
    """
    free = [0.0] * LANES_MAX
    placed: list[tuple[Mark, int | None]] = []
    for mark in marks:
        left, right = _words_from(mark, scale)
        lane = next((row for row, taken in enumerate(free) if taken <= left), None)
        if lane is not None:
            free[lane] = right + 12
        placed.append((mark, lane))
    return placed


def _words_from(mark: Mark, scale: Scale) -> tuple[float, float]:
    x, wide = scale.x(mark.at_s), width_of(mark.words, size=12) + 10
    return (x, x + wide) if x + wide <= scale.right else (x - wide, x)


def _mark(mark: Mark, lane: int | None, top: float, scale: Scale) -> str:
    x = scale.x(mark.at_s)
    start = top + LANE * lane - 7 if lane is not None else scale.top
    return tag("line", tag("title", mark.words), kind="mark", x1=x, y1=start, x2=x, y2=scale.bottom)


def _words(mark: Mark, lane: int, top: float, scale: Scale) -> str:
    x = scale.x(mark.at_s)
    before = _words_from(mark, scale)[0] < x
    return text(
        x - 5 if before else x + 5,
        top + LANE * lane + 4,
        mark.words,
        kind="small halo",
        anchor="end" if before else "start",
    )


# ----------------------------------------------------------------------------------------------------- the
# ledger's bar


def ledger_bar(now: RunFigures, *, left: float, top: float, width: float) -> str:
    """Return the bar as SVG; it is `BAR_HEIGHT` high."""
    paid_s = now.totals.paid_s
    summary = (
        f"{now.paid} paid, {usd(now.totals.usd)}, {now.useful_share} of it useful"
        if paid_s
        else "nothing was paid yet"
    )
    parts = [
        text(left, top, "Where the paid time went", kind="head"),
        text(left + width, top, summary, kind="soft", anchor="end"),
    ]
    x = left
    for part in now.parts:
        wide = width * part.seconds / paid_s if paid_s else 0.0
        parts.append(_piece(part, x, top + 14, wide))
        x += wide
    column = width / len(now.parts)
    parts += [
        _entry(part, left + column * place, top + 14 + _BAR + 24) for place, part in enumerate(now.parts)
    ]
    return "".join(parts)


def _piece(part: LedgerPart, x: float, y: float, wide: float) -> str:
    if wide <= 0:
        return ""
    hint = tag("title", f"{part.name}: {part.time}, {part.money}")
    piece = tag(
        "rect", hint, x=x, y=y, width=wide, height=_BAR, fill=PART_COLOURS[part.name], data_part=part.name
    )
    if wide < width_of(part.time, size=12) + 8:
        return piece
    return piece + text(x + wide / 2, y + _BAR / 2 + 4, part.time, kind="inside small", anchor="middle")


def _entry(part: LedgerPart, x: float, y: float) -> str:
    swatch = tag("rect", x=x, y=y - 10, width=12, height=12, rx=2, fill=PART_COLOURS[part.name])
    cost = f"{part.time} · {part.money}"
    return swatch + text(x + 18, y, part.name, kind="small") + text(x + 18, y + 17, cost, kind="soft small")

"""Draws a metric over the steps, such as the loss, as a line chart."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.pages.charts.svg import number, svg_image, tag, text, ticks

WIDTH, HEIGHT = 460, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 26, 12, 44
POINTS_MAX = 600
TREND_POINTS = 80
"""Number of segments for the trend of a curve. A curve with more than twice as many points is drawn faintly,
with the means of the segments above it, because single steps of a training are noisy.
"""
_STEPS = tuple(unit * 10**power for power in range(12) for unit in (1, 2, 5))
_VALUES = tuple(unit * 10.0**power for power in range(-12, 13) for unit in (1, 2, 5))


@dataclass(frozen=True)
class Curve:
    """`points`: steps with finite values, by step; not empty."""

    name: str
    points: tuple[tuple[int, float], ...]

    @property
    def slug(self) -> str:
        """Return the name as part of a file's name, such as "kl_divergence"."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")


def curve_svg(curve: Curve) -> str:
    """Return one self-contained SVG."""
    points = _thinned(curve.points)
    steps, values = [step for step, _ in points], [value for _, value in points]
    first, last = steps[0], max(steps[-1], steps[0] + 1)
    low, high = _range(values)

    def x(step: float) -> float:
        return _LEFT + (step - first) / (last - first) * (WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    drawn = [
        tag(
            "rect",
            kind="panel",
            x=_LEFT,
            y=_TOP,
            width=WIDTH - _LEFT - _RIGHT,
            height=HEIGHT - _TOP - _BOTTOM,
        )
    ]
    for value in _marks(low, high, _VALUES, 6):
        drawn.append(tag("line", kind="grid", x1=_LEFT, y1=y(value), x2=WIDTH - _RIGHT, y2=y(value)))
        drawn.append(text(_LEFT - 8, y(value) + 4, f"{value:.4g}", kind="soft small", anchor="end"))
    for step in _marks(first, last, _STEPS, 6):
        drawn.append(
            text(x(step), HEIGHT - _BOTTOM + 18, f"{int(step):,}", kind="soft small", anchor="middle")
        )
    drawn.append(text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, "step", kind="soft small", anchor="middle"))
    path = " ".join(f"{number(x(step))},{number(y(value))}" for step, value in points)
    trend = _means(curve.points)
    drawn.append(tag("polyline", kind="curve", points=path, opacity=0.3 if trend else 1))
    if trend:
        drawn.append(
            tag(
                "polyline",
                kind="trend",
                points=" ".join(f"{number(x(step))},{number(y(value))}" for step, value in trend),
            )
        )
    end = tag("title", f"step {steps[-1]:,}: {values[-1]:.6g}")
    drawn.append(tag("circle", end, kind="curve-end", cx=x(steps[-1]), cy=y(values[-1]), r=4))
    return svg_image("".join(drawn), WIDTH, HEIGHT, f"{curve.name} over steps")


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most about `POINTS_MAX` points: the lowest and the highest of each segment, so that no peak
    is lost.
    """
    if len(points) <= POINTS_MAX:
        return list(points)
    stretch = math.ceil(2 * len(points) / POINTS_MAX)
    kept: set[tuple[int, float]] = {points[0], points[-1]}
    for start in range(0, len(points), stretch):
        piece = points[start : start + stretch]
        kept |= {min(piece, key=lambda point: point[1]), max(piece, key=lambda point: point[1])}
    return sorted(kept)


def _means(points: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """Return step and value in the middle of each of `TREND_POINTS` segments; empty for a short curve."""
    if len(points) <= 2 * TREND_POINTS:
        return []
    stretch = math.ceil(len(points) / TREND_POINTS)
    pieces = [points[start : start + stretch] for start in range(0, len(points), stretch)]
    return [
        (
            math.fsum(step for step, _ in piece) / len(piece),
            math.fsum(value for _, value in piece) / len(piece),
        )
        for piece in pieces
    ]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return a range a little larger than that of the values; never empty."""
    low, high = min(values), max(values)
    leftover = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return low - leftover, high + leftover


def _marks(low: float, high: float, sizes: Sequence[float], wanted: int) -> list[float]:
    """Return round values from `low` to `high`."""
    size = next((size for size in sizes if (high - low) / size <= wanted), sizes[-1])
    first = math.ceil(low / size) * size
    return [first + place for place in ticks(0, high - first, (size,), wanted)] if first <= high else []

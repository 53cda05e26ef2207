"""The metrics that are drawn as curves: one row each, from which headings, file names and texts follow."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from prime_train.pages.charts.curves import Curve
from prime_train.trainers.of_spec import Progress

CURVE_VALUE_MAX = 1e30
"""Largest value in a curve. A larger one cannot be a real loss, and would make the scale of the chart
useless.
"""


@dataclass(frozen=True)
class Metric:
    """A metric that is drawn over the steps. `value_of`: the metric in what a trainer reports of a step; None
    if it is not there.
    """

    name: str
    value_of: Callable[[Progress], float | None]


METRICS: tuple[Metric, ...] = (
    Metric("loss", lambda made: made.loss),
    Metric("reward", lambda made: made.reward),
)


def curves_of(progress: Iterable[Progress], metrics: Sequence[Metric] = METRICS) -> tuple[Curve, ...]:
    """Return a curve of each metric that was reported. For a step that was trained twice, the last value
    counts.
    """
    found: dict[str, dict[int, float]] = {metric.name: {} for metric in metrics}
    for made in progress:
        for metric in metrics:
            value = metric.value_of(made)
            if value is not None and abs(value) <= CURVE_VALUE_MAX:
                found[metric.name][made.step] = value
    return tuple(Curve(name, tuple(sorted(values.items()))) for name, values in found.items() if values)


def heading(metrics: Sequence[Metric] = METRICS) -> str:
    """Return the names as a heading, such as "Loss and reward"."""
    *others, last = (metric.name for metric in metrics)
    text = f"{', '.join(others)} and {last}" if others else last
    return text[0].upper() + text[1:]


def unreported(curves: Iterable[Curve], metrics: Sequence[Metric] = METRICS) -> list[str]:
    """Return the names of the metrics without a curve."""
    drawn = {curve.name for curve in curves}
    return [metric.name for metric in metrics if metric.name not in drawn]

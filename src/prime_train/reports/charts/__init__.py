"""Charts of a run: step over time with one colour per attempt, the use of the paid time, and curves of its metrics. Inputs are values,
outputs are text."""

from prime_train.reports.charts.curves import Curve, curve_svg
from prime_train.reports.charts.facts import Point
from prime_train.reports.charts.plot import timeline_svg

__all__ = ["Curve", "Point", "curve_svg", "timeline_svg"]

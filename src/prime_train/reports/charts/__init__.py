"""Charts of a run: step over time with one colour per attempt, the use of the paid time, and curves of its metrics. Inputs are values,
outputs are text."""

from prime_train.reports.charts.curves import Curve, curve_svg
from prime_train.reports.charts.metric_curves import curves_of
from prime_train.reports.charts.timeline import timeline_svg
from prime_train.reports.charts.timeline_data import Point

__all__ = ["Curve", "Point", "curve_svg", "curves_of", "timeline_svg"]

"""A run as a picture: step over time with one colour per attempt, and the use of the paid time. Inputs are values, outputs are text."""

from prime_train.reports.charts.facts import Point
from prime_train.reports.charts.page import page_html
from prime_train.reports.charts.plot import timeline_svg

__all__ = ["Point", "page_html", "timeline_svg"]

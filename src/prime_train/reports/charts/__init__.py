"""A run as a picture: step over time, one colour per attempt, and where the paid time went. Text in, text out."""

from prime_train.reports.charts.facts import Point
from prime_train.reports.charts.page import page_html
from prime_train.reports.charts.plot import timeline_svg

__all__ = ["Point", "page_html", "timeline_svg"]

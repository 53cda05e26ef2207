"""Runs as self-contained HTML pages: they load nothing from the network, use no web font, and contain no script but prime-train's own.
Pure: values in, text out."""

from prime_train.reports.pages.demo import demo_page_html
from prime_train.reports.pages.document import Live
from prime_train.reports.pages.run_page import CheckpointSummary, LogEnd, RunPage, RunSources, run_page_html
from prime_train.reports.pages.runs_page import runs_page_html

__all__ = ["CheckpointSummary", "Live", "LogEnd", "RunPage", "RunSources", "demo_page_html", "run_page_html", "runs_page_html"]

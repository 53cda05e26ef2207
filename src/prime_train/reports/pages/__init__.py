"""Runs as HTML pages that need nothing from elsewhere: no network, no font, no script but one of ours. Pure: values in, text out."""

from prime_train.reports.pages.demo import page_html
from prime_train.reports.pages.document import Live
from prime_train.reports.pages.run_page import CheckpointSeen, LogEnd, Outside, RunPage, run_page_html
from prime_train.reports.pages.runs_page import runs_page_html

__all__ = ["CheckpointSeen", "Live", "LogEnd", "Outside", "RunPage", "page_html", "run_page_html", "runs_page_html"]

"""What people are told of a run where they read Markdown: on a pull request, in a summary."""

from prime_train.reports.markdown import code, plain
from prime_train.reports.pull_request import headline, run_page, stopped_as_asked

__all__ = ["code", "headline", "plain", "run_page", "stopped_as_asked"]

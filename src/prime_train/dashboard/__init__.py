"""The dashboard: runs as web pages, for anyone with a signed link that has not expired. It is read-only: nothing in it changes a run."""

from prime_train.dashboard.dashboard import Dashboard
from prime_train.dashboard.serving import served_here, served_on_call

__all__ = ["Dashboard", "served_here", "served_on_call"]

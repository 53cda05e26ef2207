"""The dashboard: runs as pages that are served, for whoever has a link that is signed and not over. Nothing in it changes a run."""

from prime_train.dashboard.dashboard import Dashboard
from prime_train.dashboard.serving import served_here, served_on_call

__all__ = ["Dashboard", "served_here", "served_on_call"]

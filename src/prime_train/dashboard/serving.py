"""Builds the dashboard of a control plane: its store and its bucket are opened once, and background threads read what is outside the
store.
"""

from dataclasses import dataclass
from functools import cached_property, partial

from prime_train.control_plane.reconcile import Context
from prime_train.control_plane.wiring.home import Home
from prime_train.dashboard.dashboard import Dashboard
from prime_train.dashboard.source_reader import BackgroundReader, ReadPerRequest
from prime_train.operations.page import read_run_sources
from prime_train.ports import Bucket, Store, Watched


@dataclass(frozen=True)
class OpenHome(Home):
    """A home whose store, bucket and clients are opened on first use and then kept, because pages are requested every few seconds."""

    def store(self) -> Store:
        return self._store

    def bucket(self) -> Bucket:
        return self._bucket

    def context(self, webhook_url: str, *, watched: Watched | None = None, waits: bool = False, serves: bool = False) -> Context:
        return self._context

    @cached_property
    def _store(self) -> Store:
        return super().store()

    @cached_property
    def _bucket(self) -> Bucket:
        return super().bucket()

    @cached_property
    def _context(self) -> Context:
        """The watcher's context, for reading only."""
        return super().context("")


METRICS_BYTES_MAX = 8 * 2**20
"""Bytes of a file of metrics that are read. Reading more at a time would slow down the heartbeats that the same process answers."""


def served_here(home: Home) -> Dashboard:
    """Return the dashboard for a process that runs permanently; browsers receive events about changes."""
    home_copy = OpenHome(home.root, home.environment)
    look = partial(read_run_sources, home_copy, metrics_bytes_max=METRICS_BYTES_MAX)
    return Dashboard(home_copy.store(), (home_copy.master(),), BackgroundReader(look), has_events=True)


def served_on_call(home: Home, masters: tuple[bytes, ...]) -> Dashboard:
    """Return the dashboard for a process that is suspended between two requests. It logs in to no machine."""
    home_copy = OpenHome(home.root, home.environment)
    look = partial(read_run_sources, home_copy, asks_machine=False, metrics_bytes_max=METRICS_BYTES_MAX)
    return Dashboard(home_copy.store(), masters, ReadPerRequest(look), has_events=False)

"""The dashboard of a control plane that serves: its store and its bucket are opened once, and looked at by threads beside it."""

from dataclasses import dataclass
from functools import cached_property, partial

from prime_train.control_plane.reconcile import Context
from prime_train.control_plane.wiring.home import Home
from prime_train.dashboard.dashboard import Dashboard
from prime_train.dashboard.looking import LookAgain, LookAtOnce
from prime_train.operations.page import look_outside
from prime_train.ports import Bucket, Store, Watched


@dataclass(frozen=True)
class OpenHome(Home):
    """A home whose store, bucket and clients are opened when they are first needed and kept: somebody looks every few seconds."""

    def store(self) -> Store:
        return self._store

    def bucket(self) -> Bucket:
        return self._bucket

    def context(self, webhook_url: str, *, watched: Watched | None = None, waits: bool = False) -> Context:
        return self._context

    @cached_property
    def _store(self) -> Store:
        return super().store()

    @cached_property
    def _bucket(self) -> Bucket:
        return super().bucket()

    @cached_property
    def _context(self) -> Context:
        """For looking only."""
        return super().context("")


METRICS_BYTES_MAX = 8 * 2**20
"""Bytes of a file of metrics that are read. Reading more at a time would slow down the heartbeats that the same process answers."""


def served_here(home: Home) -> Dashboard:
    """Return the dashboard for a process that goes on, and in which browsers hear of changes."""
    kept = OpenHome(home.root, home.environment)
    look = partial(look_outside, kept, metrics_bytes_max=METRICS_BYTES_MAX)
    return Dashboard(kept.store(), (kept.master(),), LookAgain(look), has_events=True)


def served_on_call(home: Home, masters: tuple[bytes, ...]) -> Dashboard:
    """Return the dashboard for a process that stands still between two requests. It logs in to no machine."""
    kept = OpenHome(home.root, home.environment)
    look = partial(look_outside, kept, asks_machine=False, metrics_bytes_max=METRICS_BYTES_MAX)
    return Dashboard(kept.store(), masters, LookAtOnce(look), has_events=False)

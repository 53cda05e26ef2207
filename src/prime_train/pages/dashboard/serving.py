"""Builds the dashboard of a control plane: its store and its bucket are opened once, and background threads
read what is outside the store.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from prime_train.app.home import Home
from prime_train.app.run_access import Observer, RunFiles
from prime_train.pages.dashboard.dashboard import Dashboard
from prime_train.pages.dashboard.source_reader import BackgroundReader, ReadPerRequest
from prime_train.pages.run_page import RunSources
from prime_train.pages.run_sources import read_run_sources
from prime_train.runs.store import RunRecord, Store

METRICS_BYTES_MAX = 8 * 2**20
"""Bytes of a file of metrics that are read. Reading more at a time would slow down the heartbeats that the
same process answers.
"""


def served_here(home: Home) -> Dashboard:
    """Return the dashboard for a process that runs permanently; browsers receive events about changes."""
    store = home.store()
    look = _reader(store, home.files(), home.observer())
    return Dashboard(store, (home.master(),), BackgroundReader(look), has_events=True)


def served_on_call(home: Home, masters: tuple[bytes, ...]) -> Dashboard:
    """Return the dashboard for a process that is suspended between two requests. It logs in to no machine."""
    store = home.store()
    look = _reader(store, home.files().without_logins(), home.observer())
    return Dashboard(store, masters, ReadPerRequest(look), has_events=False)


def _reader(store: Store, files: RunFiles, observer: Observer) -> Callable[[RunRecord], RunSources]:
    """Return what reads the sources of a run other than its store. The bucket and the clients are opened on
    first use and then kept, because pages are requested every few seconds.
    """
    kept_files = replace(files, bucket=cache(files.bucket))
    kept_observer = replace(observer, context=cache(observer.context))
    return partial(read_run_sources, store, kept_files, kept_observer, metrics_bytes_max=METRICS_BYTES_MAX)

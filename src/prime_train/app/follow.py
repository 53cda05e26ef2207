"""Follow a run until it has ended, and serve it meanwhile if nothing else does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prime_train.app.embedded import control_plane
from prime_train.app.home import Home
from prime_train.pages.dashboard.requests import Pages
from prime_train.runs.lookup import find
from prime_train.runs.run import HistoryEvent
from prime_train.runs.store import RunRecord, Store

EVERY_S = 0.5


@dataclass(frozen=True)
class RunUpdate:
    """A run as it is now. `events`: those since the previous update; `now_s`: the store's time."""

    record: RunRecord
    events: tuple[HistoryEvent, ...]
    now_s: int


def updates(store: Store, run_id: str, *, every_s: float = EVERY_S) -> Iterator[RunUpdate]:
    """Yield the run every `every_s` seconds, at first with all events since its launch, until it has ended
    and none of its machines is paid for any more. Raises UsageError if there is no such run, and
    ExternalError if the store does not answer.
    """
    seen, pause = 0, threading.Event()
    while True:
        # Read the run before its history, so that the last event is in the last update.
        record = find(store, run_id)
        history = store.history(record.run.run_id)
        yield RunUpdate(record, tuple(history[seen:]), store.now_s())
        seen = len(history)
        if record.run.is_settled:
            return
        pause.wait(every_s)


@contextmanager
def served_meanwhile(home: Home, pages: Callable[[Home], Pages]) -> Iterator[bool]:
    """Serve the home during the block if no control plane does now; the block gets whether this process
    serves it. `pages` makes the dashboard of a control plane in this process. Raises as `control_plane` does.
    """
    if home.served.is_served:
        yield False
        return
    with control_plane(home, pages=pages(home)):
        yield True

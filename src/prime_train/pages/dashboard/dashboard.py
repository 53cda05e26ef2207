"""Turns a request for a page into the response."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from prime_train.buckets.keys import is_run_id
from prime_train.errors import ExternalError
from prime_train.pages.dashboard.access import screened
from prime_train.pages.dashboard.answers import page
from prime_train.pages.dashboard.requests import EVENTS, RUN_PAGES, PageRequest, PageResponse
from prime_train.pages.dashboard.source_reader import SourceReader
from prime_train.pages.document import Live, notice_html
from prime_train.pages.run_page import run_page_html
from prime_train.pages.run_sources import page_of
from prime_train.pages.runs_page import runs_page_html
from prime_train.runs.store import RunRecord, Store
from prime_train.status.status import statuses

LOOK_S = 1.0
"""Seconds for which what was read for one request is reused for others."""
MADE_MAX = 1024
LIST_EVERY_S = 10
RUN_EVERY_S = 15

_T = TypeVar("_T")
log = logging.getLogger(__name__)


class Dashboard:
    """The pages of the runs in `store`, for requests with a token sealed by one of `masters`. `has_events`: whether browsers can receive
    events about changes; otherwise they reload the pages at intervals. `look_s`: how long one look at the store lasts."""

    def __init__(
        self, store: Store, masters: tuple[bytes, ...], sources: SourceReader, *, has_events: bool, look_s: float = LOOK_S
    ) -> None:
        self._store, self._masters, self._sources, self._has_events = store, masters, sources, has_events
        self._lock, self._look, self._look_s = threading.Lock(), _Look(store), look_s

    def screen(self, request: PageRequest) -> PageResponse | None:
        """Return the response to a request that is not a GET, has a token in its URL or has no valid cookie; None for all other requests.
        Raises ExternalError if the store's time cannot be read."""
        return screened(self._masters, request, self._store.now_s, lambda link: self._store.watch().is_revoked(link))

    def respond(self, request: PageRequest) -> PageResponse:
        """Return the page at the path of the request. All pages of the same `LOOK_S` are of one look at the store, so that the list and the
        pages of its runs never disagree."""
        run_id, look = request.path.removeprefix(RUN_PAGES), self._current()
        try:
            if request.path == "/":
                return look.pages.get("", lambda: self._list(look))
            if is_run_id(run_id):
                return look.pages.get(run_id, lambda: self._run(look, run_id))
        except ExternalError as error:
            log.warning("a page could not be shown: %s", error)
            return page(503, notice_html("Not now", "The store does not answer. Load the page again in a moment."), ("retry-after", "5"))
        return _nothing()

    def version(self, run_id: str) -> str:
        """Return a text that changes whenever the run's page does; empty if there is no such run. Raises ExternalError."""
        look = self._current()
        return look.versions.get(run_id, lambda: self._version(look, run_id)) if is_run_id(run_id) else ""

    def _current(self) -> "_Look":
        with self._lock:
            if time.monotonic() - self._look.begun_s > self._look_s:
                self._look = _Look(self._store)
            return self._look

    def _list(self, look: "_Look") -> PageResponse:
        now_s = look.now_s()
        found = statuses(self._store, load=look.record, now_s=now_s)
        return page(
            200, runs_page_html(found.runs, now_s, Live("", LIST_EVERY_S), left_out=found.left_out, unreadable=len(found.unreadable))
        )

    def _run(self, look: "_Look", run_id: str) -> PageResponse:
        record = look.record(run_id)
        if record is None:
            return _nothing()
        live = Live(f"{run_id}{EVENTS}" if self._has_events else "", RUN_EVERY_S)
        return page(200, run_page_html(page_of(self._store, record, self._sources.seen(record), now_s=look.now_s()), live))

    def _version(self, look: "_Look", run_id: str) -> str:
        record = look.record(run_id)
        if record is None:
            return ""
        self._sources.seen(record, wait_s=0.0)
        return f"{record.run.version}-{record.lease.version}-{self._sources.turn(run_id)}"


def _nothing() -> PageResponse:
    return page(404, notice_html("There is no such page", "There is no run with that name here, or it was removed."))


class _Look:
    """A single look at the store: each run and the time are read once, at their first use, and each page is made once. A version is
    of the look, too: told at once, it would make browsers load the page that was made before."""

    def __init__(self, store: Store) -> None:
        self._store, self.begun_s = store, time.monotonic()
        self.pages: _Once[PageResponse] = _Once()
        self.versions: _Once[str] = _Once()
        self._records: _Once[RunRecord | None] = _Once()
        self._times_s: _Once[int] = _Once()

    def record(self, run_id: str) -> RunRecord | None:
        return self._records.get(run_id, lambda: self._store.load(run_id))

    def now_s(self) -> int:
        return self._times_s.get("", self._store.now_s)


class _Once(Generic[_T]):
    """Values by name, each made once. If several threads request the same value, one of them makes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._made: dict[str, _T] = {}

    def get(self, name: str, make: Callable[[], _T]) -> _T:
        with self._lock:
            if len(self._locks) >= MADE_MAX:
                self._locks.clear()
                self._made.clear()
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

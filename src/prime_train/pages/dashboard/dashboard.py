"""Turns a request for a page into the response."""

import logging
import threading
import time
from collections.abc import Callable
from functools import cache
from http.cookies import CookieError, SimpleCookie
from typing import Generic, TypeVar

from prime_train.advice import Call, Operation
from prime_train.buckets.keys import is_run_id
from prime_train.errors import ExternalError
from prime_train.pages.dashboard.requests import EVENTS, RUN_PAGES, PageRequest, PageResponse
from prime_train.pages.dashboard.source_reader import SourceReader
from prime_train.pages.document import Live, content_policy, notice_html
from prime_train.pages.run_page import run_page_html
from prime_train.pages.run_sources import page_of
from prime_train.pages.runs_page import runs_page_html
from prime_train.runs.dashboard_token import Link, cookie_name, opened_link
from prime_train.runs.store import RunRecord, Store
from prime_train.status.status import statuses
from prime_train.text.invocations import command

LOOK_S = 1.0
"""Seconds for which what was read for one request is reused for others."""
MADE_MAX = 1024
LIST_EVERY_S = 10
RUN_EVERY_S = 15

_T = TypeVar("_T")
log = logging.getLogger(__name__)


class Dashboard:
    """The pages of the runs in `store`, for requests with a token sealed by one of `masters`. `has_events`:
    whether browsers can receive events about changes; otherwise they reload the pages at intervals. `look_s`:
    how long one look at the store lasts.
    """

    def __init__(
        self,
        store: Store,
        masters: tuple[bytes, ...],
        sources: SourceReader,
        *,
        has_events: bool,
        look_s: float = LOOK_S,
    ) -> None:
        self._store, self._masters, self._sources, self._has_events = store, masters, sources, has_events
        self._lock, self._look, self._look_s = threading.Lock(), _Look(store), look_s

    def screen(self, request: PageRequest) -> PageResponse | None:
        """Return the response to a request that is not a GET, has a token in its URL or has no valid cookie;
        None for all other requests. Raises ExternalError if the store's time cannot be read.
        """
        return screened(
            self._masters, request, self._store.now_s, lambda link: self._store.watch().is_revoked(link)
        )

    def respond(self, request: PageRequest) -> PageResponse:
        """Return the page at the path of the request. All pages of the same `LOOK_S` are of one look at the
        store, so that the list and the pages of its runs never disagree.
        """
        run_id, look = request.path.removeprefix(RUN_PAGES), self._current()
        try:
            if request.path == "/":
                return look.pages.get("", lambda: self._list(look))
            if is_run_id(run_id):
                return look.pages.get(run_id, lambda: self._run(look, run_id))
        except ExternalError as error:
            log.warning("a page could not be shown: %s", error)
            return page(
                503,
                notice_html("Not now", "The store does not answer. Load the page again in a moment."),
                ("retry-after", "5"),
            )
        return _nothing()

    def version(self, run_id: str) -> str:
        """Return a text that changes whenever the run's page does; empty if there is no such run. Raises
        ExternalError.
        """
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
            200,
            runs_page_html(
                found.runs,
                now_s,
                Live("", LIST_EVERY_S),
                left_out=found.left_out,
                unreadable=len(found.unreadable),
            ),
        )

    def _run(self, look: "_Look", run_id: str) -> PageResponse:
        record = look.record(run_id)
        if record is None:
            return _nothing()
        live = Live(f"{run_id}{EVENTS}" if self._has_events else "", RUN_EVERY_S)
        return page(
            200,
            run_page_html(page_of(self._store, record, self._sources.seen(record), now_s=look.now_s()), live),
        )

    def _version(self, look: "_Look", run_id: str) -> str:
        record = look.record(run_id)
        if record is None:
            return ""
        self._sources.seen(record, wait_s=0.0)
        return f"{record.run.version}-{record.lease.version}-{self._sources.turn(run_id)}"


def _nothing() -> PageResponse:
    return page(
        404, notice_html("There is no such page", "There is no run with that name here, or it was removed.")
    )


class _Look:
    """A single look at the store: each run and the time are read once, at their first use, and each page is
    made once. A version is of the look, too: told at once, it would make browsers load the page that was made
    before.
    """

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


# Access to the pages: a request must contain a valid token, in its URL the first time and in a cookie from
# then on.
#
# The token in the URL is exchanged for a cookie that scripts cannot read and that browsers do not send with
# requests from other sites. The response then leads to the same page without the token, so that the token is
# neither in the address bar nor in a Referer header. That response is a page and not an HTTP redirect,
# because after a link from another site, such as a chat, browsers send such a cookie only with requests that
# start at one of the dashboard's own pages.
TOKEN = "token"
COOKIES_CHARS_MAX = 8192
FIELDS_MAX = 10
REFUSED = (
    "The link is missing, has expired or was changed. Run this where the control plane's key is, to print a "
    "new link:"
)

REVOKED = (
    "Whoever runs the control plane has revoked it. Run this where the control plane's key is, to print a "
    "new link:"
)


def screened(
    masters: tuple[bytes, ...],
    request: PageRequest,
    clock: Callable[[], int],
    is_revoked: Callable[[Link], bool],
) -> PageResponse | None:
    """Return the response to a request that is not a GET, has a token in its URL or has no valid cookie; None
    for all other requests, which may see the page. `masters`: the master keys whose tokens are accepted;
    `clock`: returns the store's time; `is_revoked`: asks the store whether a link was revoked. Raises
    ExternalError if the store cannot be read.
    """
    if request.method != "GET":
        return page(405, notice_html("Only read", "These pages are read-only."), ("allow", "GET"))
    brought = _token(request.query)
    if brought is not None:
        link = opened_link(masters, brought, clock)
        if link is None:
            return _refused()
        return (
            _revoked() if is_revoked(link) else _exchanged(masters, request, brought, link.until_s - clock())
        )
    kept = _cookie(request.cookies, cookie_name(masters[0]))
    link = opened_link(masters, kept, clock) if kept else None
    if link is None:
        return _refused()
    return _revoked() if is_revoked(link) else None


def _token(query: str) -> str | None:
    """Return the token in the URL's query, or None if there is none."""
    found = (
        value
        for name, _, value in (field.partition("=") for field in query.split("&", FIELDS_MAX))
        if name == TOKEN
    )
    return next(found, None)


@cache
def _refused() -> PageResponse:
    return page(
        403, notice_html("These pages open with a link", REFUSED, command=command(Call(Operation.DASHBOARD)))
    )


@cache
def _revoked() -> PageResponse:
    return page(
        403, notice_html("This link was revoked", REVOKED, command=command(Call(Operation.DASHBOARD)))
    )


def _exchanged(masters: tuple[bytes, ...], request: PageRequest, token: str, left_s: int) -> PageResponse:
    """Return the page that sets the cookie and leads to the requested page. Its link is relative, because a
    proxy may serve the pages below a folder.
    """
    run_id = request.path.removeprefix(RUN_PAGES)
    there = run_id if is_run_id(run_id) else "./"
    secure = "; Secure" if request.is_https else ""
    cookie = f"{cookie_name(masters[0])}={token}; Path=/; Max-Age={left_s}; HttpOnly; SameSite=Strict{secure}"
    return page(200, notice_html("Opening", "The page opens.", leads_to=there))._replace(cookie=cookie)


def _cookie(header: str, name: str) -> str:
    if name not in header or len(header) > COOKIES_CHARS_MAX:
        return ""
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


# Builds responses from pages, with headers that stop browsers from storing, framing or reinterpreting a page,
# or loading anything into it.
HEADERS = (
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("content-security-policy", f"{content_policy(is_served=True)}; frame-ancestors 'none'"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("x-robots-tag", "noindex"),
)


def page(status: int, html: str, *more: tuple[str, str]) -> PageResponse:
    """Return the response for a page, with the common headers and `more`."""
    return PageResponse(status, html.encode(), (*HEADERS, *more))

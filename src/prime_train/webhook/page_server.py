"""The dashboard's routes: pages are made in threads of their own, and browsers are notified of changes by
server-sent events.

Nothing here delays a heartbeat: the event loop only passes bytes on, and everything that waits is bounded.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import ParamSpec, TypeVar

from starlette.types import Receive, Scope, Send

from prime_train.errors import ExternalError
from prime_train.pages.dashboard.requests import EVENTS, RUN_PAGES, PageRequest, PageResponse, Pages
from prime_train.webhook.responses import CLOSE

THREADS = 4
WAITING_MAX = 32
STREAMS_MAX = 20
"""Number of browsers that can receive events at the same time; others reload the page at intervals."""
LOOK_S = 2.0
TICK_S = 15.0
"""Longest time in seconds between two events. Ages and costs on a page change even if nothing happens."""

_PLAIN = (("content-type", "text/plain; charset=utf-8"), ("cache-control", "no-store"))
_BUSY = PageResponse(503, b"too much is asked for at once; ask again\n", (*_PLAIN, ("retry-after", "5")))
_STREAM_HEADERS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
)


class Overloaded(Exception):
    """Too many pages are being made at the moment."""


P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)


class PageServer:
    """Serves the dashboard on one event loop. `end_streams` may be called from any thread, all other methods
    only from the loop's thread. `has_events`: whether browsers are sent events, for which the process must go
    on running.
    """

    def __init__(self, pages: Pages, *, has_events: bool = True, look_s: float = LOOK_S) -> None:
        self._pages, self._has_events, self._look_s = pages, has_events, look_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="pages")
        self._waiting = self._streams = 0
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or send events until the browser disconnects."""
        headers = dict(scope["headers"])
        cookies = headers.get(b"cookie", b"").decode("latin-1")
        is_https = scope.get("scheme") == "https" or headers.get(b"x-forwarded-proto", b"") == b"https"
        request = PageRequest(
            scope["method"], scope["path"], scope["query_string"].decode("latin-1"), cookies, is_https
        )
        try:
            refusal = self._pages.screen(request)
            if refusal is None and self._has_events and request.path.endswith(EVENTS):
                await self._stream(request, receive, send)
                return
            answer = refusal if refusal is not None else await self._in_thread(self._pages.respond, request)
        except Overloaded:
            answer = _BUSY
        except ExternalError as error:
            log.warning("a page could not be shown: %s", error)
            answer = PageResponse(
                503, b"the store does not answer; retry later\n", (*_PLAIN, ("retry-after", "5"))
            )
        except Exception:
            log.exception("a page could not be shown")
            answer = PageResponse(500, b"a bug in the control plane; see its log\n", _PLAIN)
        await _send_page(send, answer)

    async def _in_thread(self, does: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._waiting >= WAITING_MAX:
            raise Overloaded
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: does(*args, **kwargs)
            )
        finally:
            self._waiting -= 1

    # --------------------------------------------------------------------------------------------------------
    # events

    async def _stream(self, request: PageRequest, receive: Receive, send: Send) -> None:
        if self._streams >= STREAMS_MAX:
            await _send_page(send, _BUSY)
            return
        self._streams += 1
        gone = asyncio.ensure_future(_gone(receive))
        try:
            run_id = request.path.removeprefix(RUN_PAGES).removesuffix(EVENTS)
            if not await self._in_thread(self._pages.version, run_id):
                await _send_page(send, PageResponse(404, b"there is no such run\n", _PLAIN))
                return
            await send({"type": "http.response.start", "status": 200, "headers": _encoded(_STREAM_HEADERS)})
            await self._go_on(request, run_id, gone, send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self._streams -= 1

    async def _go_on(
        self, request: PageRequest, run_id: str, gone: "asyncio.Future[None]", send: Send
    ) -> None:
        """Send events until the browser disconnects, its token has expired or the server ends. The first is
        sent at once, because the page may have changed since it was loaded.
        """
        loop, sent, sent_s = asyncio.get_running_loop(), "", float("-inf")
        while not (self._is_ending or gone.done() or self._is_over(request)):
            version = await self._version(run_id) or sent
            if version != sent or loop.time() - sent_s >= TICK_S:
                sent, sent_s = version, loop.time()
                await send(
                    {"type": "http.response.body", "body": b"event: changed\ndata:\n\n", "more_body": True}
                )
            await asyncio.wait({gone}, timeout=self._look_s)

    def _is_over(self, request: PageRequest) -> bool:
        try:
            return self._pages.screen(request) is not None
        except ExternalError:
            return False  # the time is not known now

    async def _version(self, run_id: str) -> str:
        """Return the version of the page; "" if it cannot be read now, in which case the page itself shows
        the problem.
        """
        try:
            return await self._in_thread(self._pages.version, run_id)
        except (ExternalError, Overloaded):
            return ""

    def end_streams(self) -> None:
        """Request that all event streams end soon."""
        self._is_ending = True

    def close(self) -> None:
        """Wait until the pages in progress are complete."""
        self._threads.shutdown()


async def _gone(receive: Receive) -> None:
    """Return when the browser has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_page(send: Send, page: PageResponse) -> None:
    cookie = (("set-cookie", page.cookie),) if page.cookie else ()
    kept = () if page.status < HTTPStatus.BAD_REQUEST else CLOSE  # strangers keep no connection
    headers = _encoded((*page.headers, *cookie, *kept, ("content-length", str(len(page.body)))))
    await send({"type": "http.response.start", "status": page.status, "headers": headers})
    await send({"type": "http.response.body", "body": page.body})


def _encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]

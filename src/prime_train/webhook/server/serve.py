"""Runs webhook and watcher in one process. `Server` is for embedding (tests, the demo, the CLI); `run_server`
is a program's main.
"""

import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Self

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.clock import uptime_s
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.pages.dashboard.requests import Pages
from prime_train.runs.store import Store
from prime_train.watch.context import Context
from prime_train.watch.observe import hears_since
from prime_train.watch.watcher import INTERVAL_S, Watcher
from prime_train.webhook.app import create_app
from prime_train.webhook.page_server import PageServer
from prime_train.webhook.server.host import ServingHost
from prime_train.webhook.server.http_server import HttpServer
from prime_train.webhook.server.open_files import connection_limits, raise_file_limit
from prime_train.webhook.state import WebhookContext

# Detects that the webhook's process stood still: suspended, asleep with its machine, or without CPU time for
# long.
#
# No heartbeat was received meanwhile, so that time proves nothing against a machine without heartbeats. The
# watcher beside the webhook continues at the same moment as the process; it must conclude nothing from
# silence before the standstill is recorded for all watchers.
LOOK_S = 1.0
STILL_S_MAX = 10.0
"""Longest normal gap in seconds between two checks, which run every second. After a longer gap the process
counts as having stood still, so that it received no heartbeats meanwhile.
"""


class SuspensionDetector:
    """The clock for all decisions beside a webhook, and a thread that detects standstills. `uptime`: seconds
    that only rise, also while the machine sleeps; `clock`: the store's time.
    """

    def __init__(
        self, store: Store, clock: Callable[[], int], uptime: Callable[[], float] = uptime_s
    ) -> None:
        self._store, self._clock, self._uptime = store, clock, uptime
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._looked_s = uptime()
        self._is_unreported = True  # no heartbeat was received before the start
        self._thread = threading.Thread(target=self._go_on, name="standstill", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S_MAX)

    def now_s(self) -> int:
        """Return the store's time, after recording since when heartbeats can be received. Raises the store's
        errors; the caller must then decide nothing.
        """
        self._look()
        return self._clock()

    def _go_on(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self._look()
            except ExternalError as error:
                log.warning(
                    "the pause in which no heartbeat could be received could not be stored; retrying: %s",
                    error,
                )

    def _look(self) -> None:
        with self._lock:
            now_s = self._uptime()
            still_s, self._looked_s = now_s - self._looked_s, now_s
            if still_s > STILL_S_MAX:
                log.warning(
                    "this process was suspended for %.0f s and received no heartbeats meanwhile", still_s
                )
                self._is_unreported = True
            if self._is_unreported:
                hears_since(self._store, self._clock())
                self._is_unreported = False


SIGNAL_LOOK_S = 0.2
GARBAGE_MIN = 10_000
START_S_MAX = 15.0
STOP_S_MAX = 10.0

log = logging.getLogger(__name__)


class Server:
    """The webhook in a thread of its own, and optionally a watcher beside it. Port 0 takes a free one.
    `clock`: replaces the store's. `pages`: the dashboard; None: it is not served.
    """

    def __init__(
        self,
        webhook: WebhookContext,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        clock: Callable[[], int] | None = None,
        pages: Pages | None = None,
    ) -> None:
        self.poke = threading.Event()
        self.ended = threading.Event()
        """Set when the webhook no longer serves, for whatever reason."""
        self._context, self._host, self._port = webhook, host, port
        self._pages = PageServer(pages) if pages is not None else None
        self._suspension = SuspensionDetector(webhook.store, clock or webhook.store.now_s)
        self._http: HttpServer | None = None
        self._thread: threading.Thread | None = None
        self.watcher: Watcher | None = None

    @property
    def url(self) -> str:
        """Return the URL at which the server listens. Valid only after `start`."""
        return url_of(self._host, self._port)

    def start(self) -> Self:
        """Start and return once connections are accepted. Raises PermanentError if the address cannot be
        used.
        """
        listener = _listen(self._host, self._port)
        self._port = listener.getsockname()[1]
        host = ServingHost(self._context, self.poke.set, self._suspension.now_s)
        self._http = HttpServer(create_app(host, self._pages), listener, connection_limits())
        self._thread = threading.Thread(
            target=self._serve, args=(self._http, listener, host), name="webhook", daemon=True
        )
        self._thread.start()
        self._suspension.start()
        if not self._http.listens.wait(START_S_MAX) or self.ended.is_set():
            self.stop()
            raise PermanentError(f"the webhook did not start within {START_S_MAX:.0f} s; its log says why")
        return self

    def _serve(self, server: HttpServer, listener: socket.socket, host: ServingHost) -> None:
        try:
            with listener:
                server.run()
        except Exception:
            log.exception("the webhook ended")
        finally:
            host.close()
            if self._pages is not None:
                self._pages.close()
            self.ended.set()
            server.listens.set()

    def watch(self, context: Context, *, interval_s: float = INTERVAL_S) -> Watcher:
        """Start a watcher that is poked by this webhook's news."""
        self.watcher = Watcher(context, self.poke, self._suspension.now_s, interval_s)
        self.watcher.start()
        return self.watcher

    def stop(self) -> None:
        """Stop the watcher, then the webhook: requests in progress get some seconds."""
        if self.watcher is not None:
            self.watcher.stop()
        self._suspension.stop()
        if self._pages is not None:
            self._pages.end_streams()
        if self._http is not None:
            self._http.stop()
        if self._thread is not None:
            self._thread.join(STOP_S_MAX)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def url_of(host: str, port: int) -> str:
    """Return the URL that pods on this machine call; a wildcard address is replaced by the loopback
    address.
    """
    named = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{named}]:{port}" if ":" in named else f"http://{named}:{port}"


def run_server(
    webhook: WebhookContext,
    context: Context | None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    interval_s: float = INTERVAL_S,
    announce: Callable[[str], None] = print,
    pages: Pages | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; main thread only. Without `context` there is no watcher. `announce` gets
    the URL once it is served.

    A context without a webhook URL gets this one. Raises PermanentError if the address cannot be used,
    TemporaryError if the webhook ended unexpectedly.
    """
    calm_collector()
    raise_file_limit()
    server = Server(webhook, host, port, pages=pages)
    with _signals() as signalled, server:
        announce(server.url)
        if context is not None:
            server.watch(
                context if context.webhook_url else replace(context, webhook_url=server.url),
                interval_s=interval_s,
            )
        while not signalled and not server.ended.wait(SIGNAL_LOOK_S):
            pass
    if not signalled:
        raise TemporaryError("the webhook ended by itself; its log says why")


def calm_collector() -> None:
    """Tune the garbage collector for a process that only serves: objects from the start are never scanned
    again, and since heartbeats leave no cycles, collections are rare. (Measured: saves 6 % of a heartbeat.)
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_MIN, 50, 50)


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Yield a list that gets every SIGTERM and SIGINT. A handler may do no more: the interrupted code might
    hold an event's lock.
    """
    signalled: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        signalled.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield signalled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise PermanentError(f"{port} is not a port; use 1 to 65535, or 0 for any free port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=connection_limits().backlog)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            free = Call(Operation.SERVE, options=(Option(SettingAdvice.PORT, "0"),))
            fix = Advice(
                "stop the process that listens there, or, if no run has a machine, use another port: ", free
            )
            raise PermanentError(f"port {port} of {host} is in use", fix=fix) from error
        raise PermanentError(f"cannot listen on {host}:{port}: {error}") from error

"""The HTTP server around the application: granian inside this process, with a limit on everything that
strangers can pile up.

Reading HTTP is left to it: it cuts whoever does not send a complete request head in time, or sends one that
is too large, and accepts no more connections than the limit until others are closed. Bodies are limited by
the application (`webhook/request_body.py`).
"""

import asyncio
import socket
import threading

import uvloop
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.types import ASGIApp

from prime_train.webhook.server.open_files import ConnectionLimits

HEAD_BYTES_MAX = 16 * 1024
"""Limit of a request's line and headers."""
HEAD_S_MAX = 4.0
"""Seconds that a client may take to send a complete request head, from the moment it is connected or was
answered. It also bounds for how long strangers can keep others from being accepted, so it is short: agents,
which send a heartbeat every half a minute, connect again. No multiple of it is a usual interval between
requests, so that connections are not closed at the moment at which the next one is sent.
"""
UNREAD_MS_MAX = 10_000
"""Milliseconds for which a client may read nothing of a response that waits for it."""
GRACE_S = 3


class HttpServer:
    """A granian server on `listener`, run by one thread and stopped by any."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        limits: ConnectionLimits,
        *,
        head_s_max: float = HEAD_S_MAX,
        unread_ms_max: int = UNREAD_MS_MAX,
    ) -> None:
        self.listens = threading.Event()
        self._app, self._listener, self._limits = app, listener, limits
        self._head_s_max, self._unread_ms_max = head_s_max, unread_ms_max
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: _OnListener | None = None

    def run(self) -> None:
        """Serve until `stop`. Call once."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    def stop(self) -> None:
        """Accept no more connections, and end once requests in progress were answered, or after `GRACE_S`
        seconds.
        """
        if self._loop is not None and self._server is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._server.stop)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = _OnListener(
            self._app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=self._limits.backlog,
            backpressure=self._limits.connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(self._head_s_max * 1000), max_buffer_size=HEAD_BYTES_MAX
            ),
            log_enabled=False,
        )
        self._server.listener, self._server.unread_ms_max = self._listener, self._unread_ms_max
        self._server.workers_kill_timeout = GRACE_S
        self._loop.call_soon(self.listens.set)
        await self._server.serve()


class _OnListener(Server):
    """granian on a socket that listens already: its own way of opening one lets a second process take the
    same port.
    """

    listener: socket.socket
    unread_ms_max: int

    def _init_shared_socket(self) -> None:
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # inherited by each connection; the system closes it
            self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.unread_ms_max)
        number = self.listener.detach()  # from now on granian closes it
        holder = SocketHolder(number, False, self.backlog)  # type: ignore[call-arg] # as of 2.8, whose stub is of an older one
        self._ssp, self._sfd, self._shd = None, number, holder  # type: ignore[assignment] # they are untyped there

"""A connection with limits that apply before the request is known.

Without them a head without end, a head that never arrives, or a response that is never read would be kept as long as the client likes; and
with pipelined requests, each response would admit thousands more. The framing of body chunks, and the headers that may follow a body
(trailers), are bounded as the head is: nothing here reads them, and the parser buffers what has no end yet.
"""

import asyncio
import time
from http import HTTPStatus
from typing import Self, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from prime_train.control_plane.server.connection_limiter import ConnectionLimiter
from prime_train.control_plane.server.request_handler import SIGNED
from prime_train.control_plane.webhook import Response, refuse

HEAD_BYTES_MAX = 16 * 1024
"""Limit of a request's line and headers, checked whenever data has arrived, so that data arriving at once may exceed it. Also the limit of
the bytes between two chunks of a body, and after the last one."""
HEADERS_MAX = 100


class Connection(HttpToolsProtocol):
    """uvicorn's connection with limits, and with refusals in the format of all refusals."""

    stuck_s_max = 10.0
    """Seconds that a client may take to send a complete request head, and seconds for which it may read nothing of a pending response."""
    limiter: ConnectionLimiter | None = None
    """The `ConnectionLimiter` that limits the number of the server's connections; None: connections are not counted."""

    @classmethod
    def among(cls, limiter: ConnectionLimiter) -> type[Self]:
        """Return the class for the connections of one server."""
        return type(cls.__name__, (cls,), {"limiter": limiter})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self.access_log = False  # whoever handles logs: an address may hold a token
        self.is_known, self.turn = False, self._next_turn()
        self._head_since_s: float | None = self.loop.time()
        self._head_bytes = self._frame_bytes = self._unread_bytes = 0
        self._is_last = False
        self._watch = self.loop.call_later(self.stuck_s_max, self._look)
        if self.limiter is not None:
            self.limiter.joined(cast("set[Connection]", self.connections), self.loop.time())

    @property
    def is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def leave(self) -> None:
        """Close the connection at once, even during a request."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything at once, so that a closed connection is freed without the collector, which runs rarely here. uvicorn keeps
        the timer of a connection that was reset, and the request refers back to its connection."""
        self._watch.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.cycle = self.scope = None  # type: ignore[assignment] # as before the first request
        self.pipeline.clear()

    def on_message_begin(self) -> None:
        self._head_since_s, self._head_bytes = self.loop.time(), 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Ignore headers that follow a body: they are not covered by the signature, and nothing reads them."""
        if self._head_since_s is not None:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._frame_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._frame_bytes = 0
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Check the request's headers; the parser turns an exception raised here into a refusal."""
        self._head_since_s, self._frame_bytes, self.turn = None, 0, self._next_turn()
        if self.cycle is not None and not self.cycle.response_complete:
            # No known client sends pipelined requests. A client that does may retry on another connection, as HTTP allows.
            self._is_last, self.cycle.keep_alive = True, False
            raise ValueError("a new request arrived before the last one was answered")
        if len(self.headers) > HEADERS_MAX:
            self._head_bytes = HEAD_BYTES_MAX + 1
            raise ValueError("too many headers")
        super().on_headers_complete()
        self.scope["extensions"] = {SIGNED: self._is_signed}  # type: ignore[dict-item] # ASGI has a server's own extensions there, too

    def data_received(self, data: bytes) -> None:
        if self._is_last:
            return
        self._head_bytes += len(data)  # bytes of an unfinished head; a head that begins now starts at 0
        self._frame_bytes += len(data)  # bytes outside of bodies; a piece of a body resets the count
        super().data_received(data)
        if self._head_since_s is not None:
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response("")
        elif self._frame_bytes > HEAD_BYTES_MAX and self.is_busy:
            self._head_bytes = self._frame_bytes
            self.send_400_response("")
        elif self.cycle is None or self.cycle.response_complete:
            self._head_since_s = self.loop.time()  # bytes that begin no request have restarted the wait for one

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not a request, or exceeds the limits."""
        if self._is_last or self.transport.is_closing():
            return
        now_s = int(time.time())  # no client uses the time in such a response
        if self._head_bytes > HEAD_BYTES_MAX:
            response = refuse(
                431, f"the headers have more than {HEAD_BYTES_MAX} bytes, or there are more than {HEADERS_MAX} of them", now_s
            )
        else:
            response = refuse(400, "this is not an HTTP/1.1 request", now_s)
        self.transport.write(_head(response) + response.body)
        self.transport.close()

    def _next_turn(self) -> int:
        return self.limiter.next_turn() if self.limiter is not None else 0

    def _is_signed(self) -> None:
        self.is_known = True

    def _look(self) -> None:
        """Close the connection if nothing has moved on it for `stuck_s_max`; called periodically."""
        unread = self.transport.get_write_buffer_size()
        late = self._head_since_s is not None and self.loop.time() - self._head_since_s >= self.stuck_s_max
        if late or (unread and unread == self._unread_bytes):
            self.transport.abort()
            return
        self._unread_bytes = unread
        self._watch = self.loop.call_later(self.stuck_s_max, self._look)


def _head(response: Response) -> bytes:
    line = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"
    return f"{line}\r\ncontent-type: application/json\r\ncontent-length: {len(response.body)}\r\nconnection: close\r\n\r\n".encode()

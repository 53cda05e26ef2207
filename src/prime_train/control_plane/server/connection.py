"""One connection, bounded before anybody knows what is asked.

Else a head without end, a head that never comes, or an answer that is never read would be kept as long as the other side likes; and of
requests that come before the last one is answered, each answer would let thousands more in. What frames the pieces of a body, and the
headers that may follow it (trailers), are bounded as the head is: nobody here reads them, and the parser keeps what has no end yet.
"""

import asyncio
import time
from http import HTTPStatus
from typing import Self, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from prime_train.control_plane.server.crowd import Crowd
from prime_train.control_plane.server.request_handler import SIGNED
from prime_train.control_plane.webhook import Response, refuse

HEAD_BYTES_MAX = 16 * 1024
"""Of a request's line and headers; it is looked at whenever something has arrived, so that what arrives at once may be more. Also of what
comes between two pieces of a body, and after the last one."""
HEADERS_MAX = 100


class Connection(HttpToolsProtocol):
    """uvicorn's own, with limits and with refusals in the one form of all refusals."""

    stuck_s_max = 10.0
    """For a whole head; and for an answer of which no byte is taken."""
    crowd: Crowd | None = None
    """Of the server that this class was made for; without one, connections are not counted."""

    @classmethod
    def among(cls, crowd: Crowd) -> type[Self]:
        """The class for the connections of one server."""
        return type(cls.__name__, (cls,), {"crowd": crowd})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self.is_known, self.turn = False, self._next_turn()
        self._head_since_s: float | None = self.loop.time()
        self._head_bytes = self._frame_bytes = self._unread_bytes = 0
        self._is_last = False
        self._watch = self.loop.call_later(self.stuck_s_max, self._look)
        if self.crowd is not None:
            self.crowd.joined(cast("set[Connection]", self.connections), self.loop.time())

    @property
    def is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def leave(self) -> None:
        """Closes it at once, whatever is under way."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head_since_s, self._head_bytes = self.loop.time(), 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """What follows a body is not among what the request was signed by, nor read by anybody."""
        if self._head_since_s is not None:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._frame_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._frame_bytes = 0
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """What is raised here, the parser makes a refusal of."""
        self._head_since_s, self._frame_bytes, self.turn = None, 0, self._next_turn()
        if self.cycle is not None and not self.cycle.response_complete:
            # No client known to us does that. Whoever does may ask again on another connection, as HTTP has it.
            self._is_last, self.cycle.keep_alive = True, False
            raise ValueError("a request before the last one is answered")
        if len(self.headers) > HEADERS_MAX:
            self._head_bytes = HEAD_BYTES_MAX + 1
            raise ValueError("too many headers")
        super().on_headers_complete()
        self.scope["extensions"] = {SIGNED: self._is_signed}  # type: ignore[dict-item] # ASGI has a server's own extensions there, too

    def data_received(self, data: bytes) -> None:
        if self._is_last:
            return
        self._head_bytes += len(data)  # of a head that is under way: one that begins now begins at 0
        self._frame_bytes += len(data)  # of whatever is no body: a piece of one sets it back
        super().data_received(data)
        if self._head_since_s is not None:
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response("")
        elif self._frame_bytes > HEAD_BYTES_MAX and self.is_busy:
            self._head_bytes = self._frame_bytes
            self.send_400_response("")
        elif self.cycle is None or self.cycle.response_complete:
            self._head_since_s = self.loop.time()  # bytes that begin no request ended the wait for one

    def send_400_response(self, msg: str) -> None:
        """To what is no request, or too much of one."""
        if self._is_last or self.transport.is_closing():
            return
        now_s = int(time.time())  # nobody takes the time over from such an answer
        if self._head_bytes > HEAD_BYTES_MAX:
            said = refuse(431, f"the headers are over {HEAD_BYTES_MAX} bytes, or more than {HEADERS_MAX}", now_s)
        else:
            said = refuse(400, "this is no request of HTTP/1.1", now_s)
        self.transport.write(_head(said) + said.body)
        self.transport.close()

    def _next_turn(self) -> int:
        return self.crowd.next_turn() if self.crowd is not None else 0

    def _is_signed(self) -> None:
        self.is_known = True

    def _look(self) -> None:
        """Now and then: a connection on which nothing moves is given up."""
        unread = self.transport.get_write_buffer_size()
        late = self._head_since_s is not None and self.loop.time() - self._head_since_s >= self.stuck_s_max
        if late or (unread and unread == self._unread_bytes):
            self.transport.abort()
            return
        self._unread_bytes = unread
        self._watch = self.loop.call_later(self.stuck_s_max, self._look)


def _head(said: Response) -> bytes:
    line = f"HTTP/1.1 {said.status} {HTTPStatus(said.status).phrase}"
    return f"{line}\r\ncontent-type: application/json\r\ncontent-length: {len(said.body)}\r\nconnection: close\r\n\r\n".encode()

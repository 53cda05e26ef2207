"""Passes exchanges from a client to the server and back, with their faults; bodies are damaged piece by
piece.
"""

import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from tests.fakes.faulty_proxy.faults import (
    CutRequest,
    CutResponse,
    Delay,
    Exchange,
    FlipRequest,
    FlipResponse,
    Strike,
    TruncateResponse,
)
from tests.fakes.faulty_proxy.wire import LINE_END, Head, MalformedMessage, Wire
from tests.fakes.http import LoseResponse, Response

INTERIM_MAX = 8
IDLE_S_MAX = 120.0


class Cut(Exception):
    """The connection ends here because of a fault."""


class Proxy(Protocol):
    """What an exchange needs of the proxy: it assigns the faults and limits the rate."""

    def begin(self, method: str, target: str) -> Exchange: ...

    def pause(self, delay_s: float) -> None: ...

    def spend(self, size: int) -> int: ...


@dataclass
class Passage:
    """Passes exchanges from one client's connection to one server's, with the faults they meet."""

    proxy: Proxy
    client: Wire
    back: Wire

    def run(self) -> None:
        while (request := self.client.head()) is not None:
            method, target = request.start.split()[:2]
            if not self._exchange(request, self.proxy.begin(method, target)):
                return

    def _exchange(self, request: Head, seen: Exchange) -> bool:
        """Pass one exchange. Return whether the connection can be used for another."""
        match seen.fault:
            case Response() as response:
                return self._answer(request, seen, response)
            case Delay(delay_s=delay_s):
                self.proxy.pause(delay_s)
            case Strike(then=then, done=False):
                self._strike(then)
            case _:
                pass
        self.back.send(request.raw)
        refused = self._refused_before_the_body(request)
        if refused is None:
            self._pass_request_body(request, seen)
        goes_on = self._pass_response(refused or self._final_head(), seen)
        return goes_on and refused is None and not request.last

    def _strike(self, then: Callable[[int], bool]) -> None:
        if then(self.client.sock.getpeername()[1]):
            raise Cut

    def _answer(self, request: Head, seen: Exchange, response: Response) -> bool:
        """Return the response. A client that waits for permission to send its body sends none; otherwise the
        body is read, because a reset would hide the response.
        """
        waits = _waits(request) and not self.client.has_more()
        if not waits:
            for _ in self._counted(self.client.body(request, to_end=False), seen):
                pass
        last = waits or request.last
        body = b"" if seen.method == "HEAD" else response.body
        seen.status, seen.response_bytes = response.status, len(body)
        lines = [
            f"HTTP/1.1 {response.status} Fault",
            f"Content-Length: {len(response.body)}",
            f"Content-Type: {response.content_type}",
        ]
        head = "\r\n".join([*lines, *(["Connection: close"] if last else []), "", ""])
        self.client.send(head.encode() + body)
        return not last

    def _refused_before_the_body(self, request: Head) -> Head | None:
        """Return the server's final response to a client that asks before it sends the body; None: the body
        follows.
        """
        if not _waits(request) or self.client.has_more():
            return None
        ready, _, _ = select.select([self.client.sock, self.back.sock], [], [], IDLE_S_MAX)
        if self.back.sock not in ready:
            return None
        head = self._next_head()
        if head.status >= 200:
            return head
        self.client.send(head.raw)
        return None

    def _pass_request_body(self, request: Head, seen: Exchange) -> None:
        pieces = self.client.body(request, to_end=False)
        match seen.fault:
            case CutRequest(after_bytes=after_bytes):
                pieces = cut(pieces, after_bytes)
            case FlipRequest(at_byte=at_byte):
                pieces = flipped(pieces, at_byte)
            case _:
                pass
        received = True
        for piece in self._counted(pieces, seen):
            received = received and self._offer(_framed(piece, request))
        if request.chunked and received:
            self._offer(b"0\r\n" + self.client.trailers + LINE_END)

    def _offer(self, data: bytes) -> bool:
        """Send data to the server. Return False if the server accepts no more: it has responded early, and
        the client has to get that response.
        """
        try:
            self.back.send(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _counted(self, pieces: Iterator[bytes], seen: Exchange) -> Iterator[bytes]:
        for piece in pieces:
            passes = self.proxy.spend(len(piece))
            seen.request_bytes += passes
            if passes:
                yield piece[:passes]
            if passes < len(piece):
                raise Cut

    def _pass_response(self, head: Head, seen: Exchange) -> bool:
        bodiless = seen.method == "HEAD" or head.status in (204, 304)
        told_end = head.chunked or head.length_bytes is not None or bodiless
        pieces = iter(()) if bodiless else self.back.body(head, to_end=True)
        goes_on = told_end and not head.last
        match seen.fault:
            case LoseResponse():
                raise Cut
            case Strike(then=then, done=True):
                self._strike(then)
            case CutResponse(after_bytes=after_bytes):
                pieces = cut(pieces, after_bytes)
            case TruncateResponse(to_bytes=to_bytes, hidden=hidden):
                pieces = first(pieces, to_bytes)
                if hidden and head.length_bytes is not None and not bodiless:
                    head = head.with_length(min(to_bytes, head.length_bytes))
                goes_on = goes_on and hidden
            case FlipResponse(at_byte=at_byte):
                pieces = flipped(pieces, at_byte)
            case _:
                pass
        self._send_response(head, pieces, seen)
        if head.chunked and not bodiless and (goes_on or not isinstance(seen.fault, TruncateResponse)):
            self.client.send(b"0\r\n" + self.back.trailers + LINE_END)
        return goes_on

    def _send_response(self, head: Head, pieces: Iterator[bytes], seen: Exchange) -> None:
        seen.status = head.status
        self.client.send(head.raw)
        for piece in pieces:
            passes = self.proxy.spend(len(piece))
            seen.response_bytes += passes
            if passes:
                self.client.send(_framed(piece[:passes], head))
            if passes < len(piece):
                raise Cut

    def _final_head(self) -> Head:
        """Return the head of the server's final response; interim responses are passed on."""
        for _ in range(INTERIM_MAX):
            head = self._next_head()
            if head.status >= 200:
                return head
            self.client.send(head.raw)
        raise MalformedMessage(f"more than {INTERIM_MAX} answers before the answer")

    def _next_head(self) -> Head:
        head = self.back.head()
        if head is None:
            raise ConnectionAbortedError("the server ended the connection without an answer")
        return head


def _waits(request: Head) -> bool:
    # Without a body there is nothing to wait for: such a request is answered at once, and the connection goes
    # on.
    return request.headers.get("expect", "").lower() == "100-continue" and request.length_bytes != 0


def _framed(piece: bytes, head: Head) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if head.chunked else piece


def first(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes. The rest is read and discarded, so that the connection can be reused."""
    for piece in pieces:
        if size > 0:
            yield piece[:size]
        size -= len(piece)


def cut(pieces: Iterator[bytes], after_bytes: int) -> Iterator[bytes]:
    """Yield the bytes up to the cut. Nothing is read beyond it; always ends with `Cut`."""
    left = after_bytes
    while left > 0 and (piece := next(pieces, None)) is not None:
        yield piece[:left]
        left -= len(piece)
    raise Cut


def flipped(pieces: Iterator[bytes], at_byte: int) -> Iterator[bytes]:
    begin = 0
    for piece in pieces:
        here, begin = at_byte - begin, begin + len(piece)
        yield (
            piece
            if not 0 <= here < len(piece)
            else piece[:here] + bytes([piece[here] ^ 0xFF]) + piece[here + 1 :]
        )

"""HTTP/1.1 on a connection: heads unchanged, bodies in pieces."""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tests.fakes.http.connections import reset_on_close

HEAD_END = b"\r\n\r\n"
LINE_END = b"\r\n"
HEAD_BYTES_MAX = 64 * 1024


class MalformedMessage(Exception):
    """The message is not HTTP/1.1, or exceeds a limit."""


@dataclass(frozen=True)
class Head:
    """The head of a request or a response, raw and parsed. Names of headers are in lower case."""

    raw: bytes
    start: str
    headers: Mapping[str, str]

    @property
    def status(self) -> int:
        return int(self.start.split()[1])

    @property
    def chunked(self) -> bool:
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length_bytes(self) -> int | None:
        message = self.headers.get("content-length")
        return None if message is None else int(message)

    @property
    def last(self) -> bool:
        """Return whether the connection ends after this message."""
        return "HTTP/1.0" in self.start or "close" in self.headers.get("connection", "").lower()

    def with_length(self, length_bytes: int) -> "Head":
        return replace(
            self, raw=re.sub(rb"(?i)(\r\ncontent-length: *)\d+", rb"\g<1>%d" % length_bytes, self.raw)
        )


def _read_head(raw: bytes) -> Head:
    start, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    if len(start.split(None, 2)) < 2:
        raise MalformedMessage(f"no start of a message: {start[:80]!r}")
    return Head(raw, start, {name.strip().lower(): value.strip() for name, _, value in pairs})


class Wire:
    """The connection to one side, parsed as HTTP/1.1."""

    def __init__(self, sock: socket.socket, piece_bytes: int) -> None:
        self.sock = sock
        self.trailers = b""
        self._piece_bytes = piece_bytes
        self._rest = b""

    def has_more(self) -> bool:
        """Return whether received data is buffered, which waiting for the socket would not show."""
        return bool(self._rest) or (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0)

    def head(self) -> Head | None:
        """Return the next head; None if the other side has ended the connection between two messages."""
        raw = self._until(HEAD_END)
        return None if raw is None else _read_head(raw)

    def body(self, head: Head, *, to_end: bool) -> Iterator[bytes]:
        """Yield the body in pieces. `to_end`: a body without a length continues until the connection ends;
        otherwise there is none.
        """
        if head.chunked:
            return self._chunks()
        if head.length_bytes is not None:
            return self._exactly(head.length_bytes)
        return self._to_end() if to_end else iter(())

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reset(self) -> None:
        """Reset the connection, so that the other side sees no orderly end."""
        reset_on_close(self.sock)
        self.sock.close()

    def _until(self, mark: bytes) -> bytes | None:
        while mark not in self._rest:
            if len(self._rest) > HEAD_BYTES_MAX:
                raise MalformedMessage(f"no end of a head within {HEAD_BYTES_MAX} bytes")
            piece = self.sock.recv(HEAD_BYTES_MAX)
            if not piece and self._rest:
                raise MalformedMessage("the connection ended within a head")
            if not piece:
                return None
            self._rest += piece
        found, _, self._rest = self._rest.partition(mark)
        return found + mark

    def _some(self, limit_bytes: int) -> bytes:
        if self._rest:
            piece, self._rest = self._rest[:limit_bytes], self._rest[limit_bytes:]
            return piece
        return self.sock.recv(limit_bytes)

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size > 0:
            piece = self._some(min(size, self._piece_bytes))
            if not piece:
                raise ConnectionAbortedError(f"the connection ended {size} bytes before the body did")
            size -= len(piece)
            yield piece

    def _line(self) -> bytes:
        line = self._until(LINE_END)
        if line is None:
            raise ConnectionAbortedError("the connection ended between two chunks")
        return line

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line().partition(b";")[0], 16):
            yield from self._exactly(size)
            self._line()
        self.trailers = b""
        while (line := self._line()) != LINE_END:
            self.trailers += line

    def _to_end(self) -> Iterator[bytes]:
        while piece := self._some(self._piece_bytes):
            yield piece

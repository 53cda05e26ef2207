"""An HTTP/1.1 connection that carries one request after the other.

Python's own client takes half of a heartbeat's time and more of a cold start, because it parses headers with the mail parser. This one
supports only what an API needs: a POST whose body is in memory, and a response with a content length, in chunks, or ended by the
connection. Anything else raises `ProtocolError`.
"""

import socket
import ssl
from functools import cache
from typing import NamedTuple

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 16 * 2**20
"""Size limit of a response body; DynamoDB's own limit."""
READ_BYTES = 64 * 1024
SIZE_DIGITS_MAX = 9
TRAILERS_MAX = 64
STATUS_MIN = 200
NO_CONTENT = 204
_END = b"\r\n"


class ProtocolError(Exception):
    """The response is not HTTP as supported here, or too large, or truncated."""


class HttpResponse(NamedTuple):
    """A response. `keeps`: the connection may be reused. `date`: the Date header, or empty if there is none."""

    status: int
    body: bytes
    keeps: bool
    date: str = ""


class Connection:
    """A connection to `host`, which may include a port. Raises OSError and `ProtocolError`; after either the connection cannot be used
    again. For one thread at a time."""

    def __init__(self, host: str, *, is_tls: bool, connect_s: float, answer_s: float) -> None:
        name, port = _address(host, is_tls)
        self._socket = socket.create_connection((name, port), connect_s)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if is_tls:
                self._socket = trusted().wrap_socket(self._socket, server_hostname=name)
            self._socket.settimeout(answer_s)
        except BaseException:
            self._socket.close()
            raise
        self._read = b""

    def post(self, path: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        """Send a POST and return its response. The caller must ensure that `headers` hold no invalid characters; the content length is
        added here."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._socket.sendall(f"POST {path} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body)
        first, *header_lines = self._until(b"\r\n\r\n", HEAD_BYTES_MAX).split(_END)
        version, _, status = first[:12].partition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit() or int(status) < STATUS_MIN:
            raise ProtocolError("the answer's first line is invalid")
        response_headers = _headers(header_lines)
        keeps = version == b"HTTP/1.1" and response_headers.get(b"connection", b"").lower() != b"close"
        return self._response(int(status), response_headers, keeps)._replace(date=response_headers.get(b"date", b"").decode("latin-1"))

    def close(self) -> None:
        self._socket.close()

    def _response(self, status: int, response_headers: dict[bytes, bytes], keeps: bool) -> HttpResponse:
        pieces, length = response_headers.get(b"transfer-encoding"), response_headers.get(b"content-length")
        if pieces is not None:
            if pieces.lower() != b"chunked" or length is not None:
                raise ProtocolError("the answer's encoding is not supported")
            return self._done(status, self._in_pieces(), keeps)
        if length is not None:
            return self._done(status, self._exactly(_size(length, 10)), keeps)
        if status == NO_CONTENT:
            return self._done(status, b"", keeps)
        return HttpResponse(status, self._to_the_end(), keeps=False)

    def _done(self, status: int, body: bytes, keeps: bool) -> HttpResponse:
        """Return the response. If unrequested bytes follow it, the connection is not reused, so that they are not taken for the next
        response."""
        return HttpResponse(status, body, keeps and not self._read)

    def _in_pieces(self) -> bytes:
        body = b""
        while size := _size(self._until(_END, HEAD_BYTES_MAX).partition(b";")[0].strip(), 16):
            if len(body) + size > BODY_BYTES_MAX:
                raise ProtocolError("the answer is too large")
            body += self._exactly(size)
            if self._exactly(2) != _END:
                raise ProtocolError("a chunk of the answer is invalid")
        for _ in range(TRAILERS_MAX):
            if not self._until(_END, HEAD_BYTES_MAX):
                return body
        raise ProtocolError("the answer does not end")

    def _until(self, end: bytes, most: int) -> bytes:
        """Return the bytes before `end`, and consume `end` too."""
        while (at := self._read.find(end)) < 0:
            if len(self._read) > most:
                raise ProtocolError("the answer is too large")
            self._more()
        found, self._read = self._read[:at], self._read[at + len(end) :]
        return found

    def _exactly(self, size: int) -> bytes:
        if size > BODY_BYTES_MAX:
            raise ProtocolError("the answer is too large")
        if len(self._read) < size:
            parts, have = [self._read], len(self._read)
            while have < size:
                parts.append(self._received())
                have += len(parts[-1])
            self._read = b"".join(parts)
        found, self._read = self._read[:size], self._read[size:]
        return found

    def _to_the_end(self) -> bytes:
        while part := self._socket.recv(READ_BYTES):
            self._read += part
            if len(self._read) > BODY_BYTES_MAX:
                raise ProtocolError("the answer is too large")
        return self._read

    def _more(self) -> None:
        self._read += self._received()

    def _received(self) -> bytes:
        part = self._socket.recv(READ_BYTES)
        if not part:
            raise ProtocolError("the answer is truncated")
        return part


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context with the system's certificate authorities; cached because loading them takes 20 ms."""
    return ssl.create_default_context()


def _address(host: str, is_tls: bool) -> tuple[str, int]:
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    return name.strip("[]"), int(port) if port else 443 if is_tls else 80


def _headers(lines: list[bytes]) -> dict[bytes, bytes]:
    """Return headers with names in lower case. Raises ProtocolError if a header that sets the body's length comes twice with different
    values."""
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name, value = name.lower(), value.strip()
        if not colon or not name or name != name.strip():
            raise ProtocolError("a header of the answer is invalid")
        if found.setdefault(name, value) != value and name in (b"content-length", b"transfer-encoding"):
            raise ProtocolError("the answer has two content lengths")
    return found


def _size(text: bytes, base: int) -> int:
    """Parse a length of plain digits; `int` alone would accept signs and underscores too."""
    if not 0 < len(text) <= SIZE_DIGITS_MAX or not text.isalnum():
        raise ProtocolError("a length in the answer is invalid")
    try:
        return int(text, base)
    except ValueError:
        raise ProtocolError("a length in the answer is invalid") from None

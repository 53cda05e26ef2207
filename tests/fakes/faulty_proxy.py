"""A wire to an S3 server that fails where a test says so: a reverse proxy for HTTP/1.1 on loopback.

Each connection of a client has a thread and one connection to the server behind it; their exchanges are passed on one at a time, in pieces,
heads byte by byte as they came. So `Host`, and with it every signature, stays right, and keep-alive ends where either side ends it.
`Expect: 100-continue` is the server's to answer. A body in chunks is passed on in chunks of other sizes; its bytes are counted without the
framing of HTTP, but with that of `aws-chunked`.

Rules say which requests meet which fault; a request meets one at most. Every exchange is recorded before the client can see its effect.
"""

import contextlib
import re
import select
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlsplit

from tests.fakes.certificates import Certificate

HEAD_END = b"\r\n\r\n"
LINE_END = b"\r\n"
HEAD_BYTES_MAX = 64 * 1024
PIECE_BYTES_MAX = 256 * 1024
INTERIM_MAX = 8
IDLE_S_MAX = 120.0
ALWAYS = 1_000_000
"""For `times`: every request there will be."""

# ------------------------------------------------------------------------------------------------------------------------ faults


@dataclass(frozen=True)
class Delay:
    """The request is passed on `delay_s` later, then as it is."""

    delay_s: float


@dataclass(frozen=True)
class Answer:
    """The client gets this instead; the server hears nothing."""

    status: int
    body: bytes = b""


@dataclass(frozen=True)
class CutRequest:
    """Both connections are reset after so many bytes of the request's body, or at its end where it is shorter."""

    after_bytes: int


@dataclass(frozen=True)
class LoseResponse:
    """The server has answered, so it has done what was asked; the client's connection is reset without a word."""


@dataclass(frozen=True)
class CutResponse:
    """The client's connection is reset after so many bytes of the response's body; a reset may take sent bytes with it."""

    after_bytes: int


@dataclass(frozen=True)
class TruncateResponse:
    """The response ends early and in order. `hidden`: its Content-Length says so too, so that only the contents can tell."""

    to_bytes: int
    hidden: bool = False


@dataclass(frozen=True)
class FlipRequest:
    """The byte at this offset of the request's body reaches the server with all bits turned."""

    at_byte: int


@dataclass(frozen=True)
class FlipResponse:
    """The same on the way back."""

    at_byte: int


Fault = Delay | Answer | CutRequest | LoseResponse | CutResponse | TruncateResponse | FlipRequest | FlipResponse


def s3_error(status: int, code: str, message: str, more: str = "") -> Answer:
    """As S3 words its errors; `more` is XML."""
    body = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}<RequestId>FAULTY</RequestId><HostId>proxy</HostId></Error>"
    return Answer(status, b'<?xml version="1.0" encoding="UTF-8"?>\n' + body.encode())


INTERNAL_ERROR = s3_error(500, "InternalError", "We encountered an internal error. Please try again.")
SERVICE_UNAVAILABLE = s3_error(503, "ServiceUnavailable", "Service is unable to handle request.")
SLOW_DOWN = s3_error(503, "SlowDown", "Please reduce your request rate.")
TIME_TOO_SKEWED = s3_error(403, "RequestTimeTooSkewed", "The difference between the request time and the server's time is too large.")
ACCESS_DENIED = s3_error(403, "AccessDenied", "Access Denied")
NO_SUCH_BUCKET = s3_error(404, "NoSuchBucket", "The specified bucket does not exist")
PERMANENT_REDIRECT = s3_error(
    301,
    "PermanentRedirect",
    "The bucket you are attempting to access must be addressed using the specified endpoint.",
    "<Endpoint>s3.elsewhere.invalid</Endpoint>",
)


@dataclass(frozen=True)
class Rule:
    """The fault for `times` requests of those that match, from the `first` on, counted from 1. `path` is searched in path and query."""

    fault: Fault
    method: str = ".*"
    path: str = ""
    first: int = 1
    times: int = 1


@dataclass
class Exchange:
    """A request and what came of it. Bytes are those of bodies: of the request as the client sent them, of the response as they were sent
    to it. `status` is 0 where the client was told none."""

    method: str
    target: str
    request_bytes: int = 0
    response_bytes: int = 0
    status: int = 0
    fault: Fault | None = None


def _matches(seen: Exchange, method: str, path: str) -> bool:
    return re.fullmatch(method, seen.method) is not None and re.search(path, seen.target) is not None


# ------------------------------------------------------------------------------------------------------------------------- proxy


@dataclass
class FaultyProxy:
    """Use as a context manager. `back` is the server's URL, plain HTTP; with a `certificate` the clients speak TLS. `bytes_per_s` is the
    limit of all bodies of all connections, both ways together."""

    back: str
    certificate: Certificate | None = None
    bytes_per_s: float | None = None
    broken: list[str] = field(default_factory=list)
    """Why connections ended that no fault has cut."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[tuple[Rule, list[Exchange]]] = []
        self._exchanges: list[Exchange] = []
        self._open: set[socket.socket] = set()
        self._stopping = threading.Event()
        self._free_s = 0.0
        self._context = self.certificate.server_context() if self.certificate else None
        self._front = _Front(self)
        self._thread = threading.Thread(target=self._front.serve_forever, kwargs={"poll_interval": 0.02}, name="faulty-proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._front.shutdown()
        self._thread.join()
        with self._lock:
            for sock in self._open:
                _wake(sock)
        # Waits for the threads of all connections.
        self._front.server_close()

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self._front.server_address[1]}"

    def fail(self, fault: Fault, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1) -> None:
        """From now on: one more rule, as `Rule` has it. Of rules that want the same request the oldest has it."""
        with self._lock:
            self._rules.append((Rule(fault, method, path, first, times), []))

    def heal(self) -> None:
        """No rules any more."""
        with self._lock:
            self._rules.clear()

    def exchanges(self, *, method: str = ".*", path: str = "") -> list[Exchange]:
        """Those that match, in the order in which they began."""
        with self._lock:
            return [replace(each) for each in self._exchanges if _matches(each, method, path)]

    def sent_bytes(self, path: str = "", *, method: str = "PUT") -> int:
        """What clients have sent in bodies of requests that match."""
        return sum(each.request_bytes for each in self.exchanges(method=method, path=path))

    @property
    def piece_bytes(self) -> int:
        """The most that is held of a body; with a limit, a twentieth of a second of it."""
        return PIECE_BYTES_MAX if self.bytes_per_s is None else max(1, min(PIECE_BYTES_MAX, int(self.bytes_per_s / 20)))

    def begin(self, method: str, target: str) -> Exchange:
        seen = Exchange(method, target)
        with self._lock:
            self._exchanges.append(seen)
            for rule, matched in self._rules:
                if _matches(seen, rule.method, rule.path):
                    matched.append(seen)
                    if seen.fault is None and rule.first <= len(matched) < rule.first + rule.times:
                        seen.fault = rule.fault
        return seen

    def pause(self, delay_s: float) -> None:
        """Less where the proxy ends."""
        self._stopping.wait(delay_s)

    def spend(self, size: int) -> None:
        """Returns when so many bytes may have passed."""
        if self.bytes_per_s is None:
            return
        with self._lock:
            self._free_s = max(self._free_s, time.monotonic()) + size / self.bytes_per_s
            wait_s = self._free_s - time.monotonic()
        self.pause(max(0.0, wait_s))

    def serve(self, sock: socket.socket) -> None:
        """All that comes by one connection of a client."""
        wires: list[Wire] = []
        try:
            client = self._wire(self._dressed(sock), wires)
            if isinstance(client.sock, ssl.SSLSocket):
                client.sock.do_handshake()
            at = urlsplit(self.back)
            back = self._wire(socket.create_connection((at.hostname, at.port), timeout=IDLE_S_MAX), wires)
            _Passage(self, client, back).run()
        except _Cut:
            for wire in wires:
                wire.reset()
        except (OSError, MalformedMessage) as error:
            if not self._stopping.is_set():
                self.broken.append(f"{type(error).__name__}: {error}")
        finally:
            for wire in wires:
                self._forget(wire.sock)

    def _dressed(self, sock: socket.socket) -> socket.socket:
        # The handshake comes later, when the end of the proxy can end it.
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def _wire(self, sock: socket.socket, wires: list["Wire"]) -> "Wire":
        sock.settimeout(IDLE_S_MAX)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wires.append(Wire(sock, self.piece_bytes))
        with self._lock:
            self._open.add(sock)
        if self._stopping.is_set():
            raise ConnectionAbortedError("the proxy ends")
        return wires[-1]

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
            sock.close()


class _Front(socketserver.ThreadingTCPServer):
    request_queue_size = 128

    def __init__(self, proxy: FaultyProxy) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self._proxy = proxy
        if proxy.bytes_per_s is not None:
            # Or the kernel takes megabytes at once, whatever the limit is.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE_BYTES_MAX)

    def finish_request(self, request: Any, client_address: Any) -> None:
        self._proxy.serve(request)


def _wake(sock: socket.socket) -> None:
    # Where the other side has ended already there is nobody to wake.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


# -------------------------------------------------------------------------------------------------------------------------- HTTP


class MalformedMessage(Exception):
    """Not HTTP/1.1, or more of it than is allowed."""


class _Cut(Exception):
    """A fault says that the connection ends here."""


@dataclass(frozen=True)
class Head:
    """Of a request or a response: as it came, and read. Names of headers are in lower case."""

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
        said = self.headers.get("content-length")
        return None if said is None else int(said)

    @property
    def last(self) -> bool:
        """Whether the connection ends after this message."""
        return "HTTP/1.0" in self.start or "close" in self.headers.get("connection", "").lower()

    def with_length(self, length_bytes: int) -> "Head":
        return replace(self, raw=re.sub(rb"(?i)(\r\ncontent-length: *)\d+", rb"\g<1>%d" % length_bytes, self.raw))


def _read_head(raw: bytes) -> Head:
    start, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    if len(start.split(None, 2)) < 2:
        raise MalformedMessage(f"no start of a message: {start[:80]!r}")
    return Head(raw, start, {name.strip().lower(): value.strip() for name, _, value in pairs})


class Wire:
    """One side's connection, read as HTTP/1.1."""

    def __init__(self, sock: socket.socket, piece_bytes: int) -> None:
        self.sock = sock
        self.trailers = b""
        self._piece_bytes = piece_bytes
        self._rest = b""

    def has_more(self) -> bool:
        """Whether something was received that a wait for the socket would not show."""
        return bool(self._rest) or (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0)

    def head(self) -> Head | None:
        """None where the other side has ended the connection between two messages."""
        raw = self._until(HEAD_END)
        return None if raw is None else _read_head(raw)

    def body(self, head: Head, *, to_end: bool) -> Iterator[bytes]:
        """In pieces. `to_end`: a body that tells no length goes on until the connection ends; else there is none."""
        if head.chunked:
            return self._chunks()
        if head.length_bytes is not None:
            return self._exactly(head.length_bytes)
        return self._to_end() if to_end else iter(())

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reset(self) -> None:
        """The other side sees a connection reset, not an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
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


@dataclass
class _Passage:
    """Passes exchanges from one client's connection to one server's, and meets the faults on the way."""

    proxy: FaultyProxy
    client: Wire
    back: Wire

    def run(self) -> None:
        while (request := self.client.head()) is not None:
            method, target = request.start.split()[:2]
            if not self._exchange(request, self.proxy.begin(method, target)):
                return

    def _exchange(self, request: Head, seen: Exchange) -> bool:
        """Whether the connection can be used for another."""
        match seen.fault:
            case Answer() as answer:
                return self._answer(request, seen, answer)
            case Delay(delay_s=delay_s):
                self.proxy.pause(delay_s)
            case _:
                pass
        self.back.send(request.raw)
        refused = self._refused_before_the_body(request)
        if refused is None:
            self._pass_request_body(request, seen)
        goes_on = self._pass_response(refused or self._final_head(), seen)
        return goes_on and refused is None and not request.last

    def _answer(self, request: Head, seen: Exchange, answer: Answer) -> bool:
        """A client that waits for leave to send its body sends none; otherwise the body is read, or a reset would hide the answer."""
        waits = _waits(request) and not self.client.has_more()
        if not waits:
            for _ in self._counted(self.client.body(request, to_end=False), seen):
                pass
        last = waits or request.last
        body = b"" if seen.method == "HEAD" else answer.body
        seen.status, seen.response_bytes = answer.status, len(body)
        lines = [f"HTTP/1.1 {answer.status} Told", f"Content-Length: {len(answer.body)}", "Content-Type: application/xml"]
        head = "\r\n".join([*lines, *(["Connection: close"] if last else []), "", ""])
        self.client.send(head.encode() + body)
        return not last

    def _refused_before_the_body(self, request: Head) -> Head | None:
        """The server's answer, if it is one, to a client that asks before it sends; None: the body is to come."""
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
                pieces = _cut(pieces, after_bytes)
            case FlipRequest(at_byte=at_byte):
                pieces = _flipped(pieces, at_byte)
            case _:
                pass
        heard = True
        for piece in self._counted(pieces, seen):
            heard = heard and self._offer(_framed(piece, request))
        if request.chunked and heard:
            self._offer(b"0\r\n" + self.client.trailers + LINE_END)

    def _offer(self, data: bytes) -> bool:
        """False where the server takes no more: it has answered early, and that answer is what the client is to see."""
        try:
            self.back.send(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _counted(self, pieces: Iterator[bytes], seen: Exchange) -> Iterator[bytes]:
        for piece in pieces:
            seen.request_bytes += len(piece)
            self.proxy.spend(len(piece))
            yield piece

    def _pass_response(self, head: Head, seen: Exchange) -> bool:
        bodiless = seen.method == "HEAD" or head.status in (204, 304)
        told_end = head.chunked or head.length_bytes is not None or bodiless
        pieces = iter(()) if bodiless else self.back.body(head, to_end=True)
        goes_on = told_end and not head.last
        match seen.fault:
            case LoseResponse():
                raise _Cut
            case CutResponse(after_bytes=after_bytes):
                pieces = _cut(pieces, after_bytes)
            case TruncateResponse(to_bytes=to_bytes, hidden=hidden):
                pieces = _first(pieces, to_bytes)
                if hidden and head.length_bytes is not None and not bodiless:
                    head = head.with_length(min(to_bytes, head.length_bytes))
                goes_on = goes_on and hidden
            case FlipResponse(at_byte=at_byte):
                pieces = _flipped(pieces, at_byte)
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
            self.proxy.spend(len(piece))
            seen.response_bytes += len(piece)
            self.client.send(_framed(piece, head))

    def _final_head(self) -> Head:
        """The server's answer; what it says before that is passed on."""
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
    return request.headers.get("expect", "").lower() == "100-continue"


def _framed(piece: bytes, head: Head) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if head.chunked else piece


def _first(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The rest is read and dropped, so that the connection can go on."""
    for piece in pieces:
        if size > 0:
            yield piece[:size]
        size -= len(piece)


def _cut(pieces: Iterator[bytes], after_bytes: int) -> Iterator[bytes]:
    """Nothing is read beyond; ends with `_Cut` in any case."""
    left = after_bytes
    while left > 0 and (piece := next(pieces, None)) is not None:
        yield piece[:left]
        left -= len(piece)
    raise _Cut


def _flipped(pieces: Iterator[bytes], at_byte: int) -> Iterator[bytes]:
    begin = 0
    for piece in pieces:
        here, begin = at_byte - begin, begin + len(piece)
        yield piece if not 0 <= here < len(piece) else piece[:here] + bytes([piece[here] ^ 0xFF]) + piece[here + 1 :]

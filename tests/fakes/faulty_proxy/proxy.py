"""The proxy itself: its rules, its records, and a thread for each connection."""

import contextlib
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlsplit

from tests.fakes.certificates import Certificate
from tests.fakes.faulty_proxy.faults import Exchange, Fault, Rule, matches
from tests.fakes.faulty_proxy.http import MalformedMessage, Wire
from tests.fakes.faulty_proxy.passage import IDLE_S_MAX, Passage
from tests.fakes.faulty_proxy.pieces import Cut

PIECE_BYTES_MAX = 256 * 1024


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
        self._left: int | None = None
        self._then: Callable[[], object] = lambda: None
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

    def end_after(self, size: int, then: Callable[[], object]) -> None:
        """So many bytes of bodies pass yet, both ways together; with the last of them `then` is called, and what comes later is cut."""
        with self._lock:
            self._left, self._then = size, then

    def heal(self) -> None:
        """No rules any more, and no end."""
        with self._lock:
            self._rules.clear()
            self._left = None

    def forget(self) -> None:
        """No rules and no records any more; for when no exchange is under way."""
        self.heal()
        with self._lock:
            self._exchanges.clear()

    def exchanges(self, *, method: str = ".*", path: str = "") -> list[Exchange]:
        """Those that match, in the order in which they began."""
        with self._lock:
            return [replace(each) for each in self._exchanges if matches(each, method, path)]

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
                if matches(seen, rule.method, rule.path):
                    matched.append(seen)
                    if seen.fault is None and rule.first <= len(matched) < rule.first + rule.times:
                        seen.fault = rule.fault
        return seen

    def pause(self, delay_s: float) -> None:
        """Less where the proxy ends."""
        self._stopping.wait(delay_s)

    def spend(self, size: int) -> int:
        """Returns, when so many bytes may have passed, how many of them do."""
        with self._lock:
            passes = size if self._left is None else min(size, self._left)
            ends = self._left is not None and 0 < self._left <= size
            self._left = None if self._left is None else self._left - passes
        if ends:
            self._then()
        if self.bytes_per_s is None:
            return passes
        with self._lock:
            self._free_s = max(self._free_s, time.monotonic()) + size / self.bytes_per_s
            wait_s = self._free_s - time.monotonic()
        self.pause(max(0.0, wait_s))
        return passes

    def serve(self, sock: socket.socket) -> None:
        """All that comes by one connection of a client."""
        wires: list[Wire] = []
        try:
            client = self._wire(self._dressed(sock), wires)
            if isinstance(client.sock, ssl.SSLSocket):
                client.sock.do_handshake()
            at = urlsplit(self.back)
            back = self._wire(socket.create_connection((at.hostname, at.port), timeout=IDLE_S_MAX), wires)
            Passage(self, client, back).run()
        except Cut:
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

    def _wire(self, sock: socket.socket, wires: list[Wire]) -> Wire:
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

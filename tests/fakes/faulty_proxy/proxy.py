"""The proxy itself: its rules, its records, and a thread for each connection."""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import urlsplit

from tests.fakes.certificates import Certificate
from tests.fakes.faulty_proxy.faults import Exchange, Fault
from tests.fakes.faulty_proxy.passage import IDLE_S_MAX, Cut, Passage
from tests.fakes.faulty_proxy.wire import MalformedMessage, Wire
from tests.fakes.http import ConnectionServer, Rules

PIECE_BYTES_MAX = 256 * 1024


@dataclass
class FaultyProxy:
    """A proxy; use it as a context manager. `back` is the server's URL, plain HTTP; with a `certificate` the
    clients use TLS. `bytes_per_s` limits all bodies of all connections, in both directions together.
    """

    back: str
    certificate: Certificate | None = None
    bytes_per_s: float | None = None
    broken: list[str] = field(default_factory=list)
    """Errors that ended connections without a fault."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: Rules[Fault] = Rules()
        self._exchanges: list[Exchange] = []
        self._stopping = threading.Event()
        self._free_s = 0.0
        self._left: int | None = None
        self._then: Callable[[], object] = lambda: None
        self._context = self.certificate.server_context() if self.certificate else None
        # With a limit the kernel must not take megabytes at once.
        self._server = ConnectionServer(
            self._serve, receive_buffer_bytes=None if self.bytes_per_s is None else PIECE_BYTES_MAX
        )

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.close()
        assert not self._server.broken, f"the proxy itself failed: {self._server.broken}"

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self._server.port}"

    def fail(
        self, fault: Fault, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1
    ) -> None:
        """Apply the fault to `times` of the matching requests, from the `first` on; `path` is searched in
        path and query.
        """
        with self._lock:
            self._rules.add(fault, method=method, path=path, first=first, times=times)

    def end_after(self, size: int, then: Callable[[], object]) -> None:
        """Let this many more bytes of bodies pass, in both directions together. With the last of them `then`
        is called, and everything later is cut.
        """
        with self._lock:
            self._left, self._then = size, then

    def heal(self) -> None:
        """Remove all rules and the limit of bytes."""
        with self._lock:
            self._rules.clear()
            self._left = None

    def forget(self) -> None:
        """Remove all rules and records; only while no exchange is in progress."""
        self.heal()
        with self._lock:
            self._exchanges.clear()

    def exchanges(self, *, method: str = ".*", path: str = "") -> list[Exchange]:
        """Return the matching exchanges in the order in which they began."""
        with self._lock:
            return [replace(each) for each in self._exchanges if each.matches(method, path)]

    def sent_bytes(self, path: str = "", *, method: str = "PUT") -> int:
        """Return the bytes that clients have sent in bodies of matching requests."""
        return sum(each.request_bytes for each in self.exchanges(method=method, path=path))

    @property
    def piece_bytes(self) -> int:
        """Return the most bytes of a body that are held at once; with a rate limit, those of a twentieth of a
        second.
        """
        return (
            PIECE_BYTES_MAX
            if self.bytes_per_s is None
            else max(1, min(PIECE_BYTES_MAX, int(self.bytes_per_s / 20)))
        )

    def begin(self, method: str, target: str) -> Exchange:
        with self._lock:
            self._exchanges.append(Exchange(method, target, fault=self._rules.meet(method, target)))
            return self._exchanges[-1]

    def pause(self, delay_s: float) -> None:
        """Wait; shorter if the proxy ends."""
        self._stopping.wait(delay_s)

    def spend(self, size: int) -> int:
        """Wait until bytes may pass, and return how many of `size` may."""
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

    def _serve(self, sock: socket.socket) -> None:
        """Serve one connection of a client."""
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
                self._server.forget(wire.sock)

    def _dressed(self, sock: socket.socket) -> socket.socket:
        # The handshake comes later, when the end of the proxy can end it.
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def _wire(self, sock: socket.socket, wires: list[Wire]) -> Wire:
        sock.settimeout(IDLE_S_MAX)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wires.append(Wire(sock, self.piece_bytes))
        self._server.track(sock)
        return wires[-1]

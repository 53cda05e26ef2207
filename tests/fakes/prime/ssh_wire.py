"""The wire between a client of SSH and a pod: it passes bytes on, and is cut where a test says so."""

import contextlib
import select
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PIECE_BYTES_MAX = 16 * 1024
IDLE_S_MAX = 120.0
CONNECT_S_MAX = 10.0


@dataclass(frozen=True)
class Cut:
    """After so many bytes, both ways together, `then` is called with the port from which the client has connected."""

    after_bytes: int
    then: Callable[[int], object]


class Cuts:
    """Cuts that are still to be made, each for one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Cut] = []
        self.made = 0

    def add(self, cut: Cut, times: int) -> None:
        with self._lock:
            self._waiting += [cut] * times

    def next(self) -> Cut | None:
        """Of a new connection."""
        with self._lock:
            return self._waiting.pop(0) if self._waiting else None

    def note(self) -> None:
        with self._lock:
            self.made += 1


class SshWire:
    """Listens on `port`, and passes on to that port of loopback `to_port`. `close` resets what is open."""

    def __init__(self, to_port: int, cuts: Cuts) -> None:
        self.to_port = to_port
        self.cuts = cuts
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._front = _Front(self)
        self._thread = threading.Thread(target=self._front.serve_forever, kwargs={"poll_interval": 0.02}, name="ssh-wire", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._front.server_address[1])

    def close(self) -> None:
        self._front.shutdown()
        self._thread.join()
        with self._lock:
            for sock in self._open:
                # Wakes the thread that passes it on; where the other side has ended there is nobody to wake.
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        self._front.server_close()

    def passes(self, client: socket.socket) -> None:
        """One connection, from its beginning to its end."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.to_port), timeout=CONNECT_S_MAX) as back:
            with self._lock:
                self._open |= {client, back}
            try:
                self._pump(client, back, self.cuts.next())
            finally:
                with self._lock:
                    self._open -= {client, back}

    def _pump(self, client: socket.socket, back: socket.socket, cut: Cut | None) -> None:
        other = {client: back, back: client}
        left = None if cut is None else cut.after_bytes
        while left is None or left > 0:
            ready, _, _ = select.select(list(other), [], [], IDLE_S_MAX)
            for sock in ready:
                piece = sock.recv(PIECE_BYTES_MAX if left is None else max(1, min(PIECE_BYTES_MAX, left)))
                if not piece:
                    return
                other[sock].sendall(piece)
                left = None if left is None else left - len(piece)
        self.cuts.note()
        if cut is not None:
            cut.then(client.getpeername()[1])
        self._cut(client, back)

    def _cut(self, client: socket.socket, back: socket.socket) -> None:
        """The client sees a reset; what has passed reaches the sshd of the pod, then an end."""
        # Closed with nothing lingering, a connection is reset.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        back.shutdown(socket.SHUT_WR)
        # Closed with something unread, it would be reset too, and take with it what the pod has not read yet.
        back.settimeout(IDLE_S_MAX)
        while back.recv(PIECE_BYTES_MAX):
            pass


class _Front(socketserver.ThreadingTCPServer):
    request_queue_size = 64
    daemon_threads = True

    def __init__(self, wire: SshWire) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self._wire = wire

    def finish_request(self, request: Any, client_address: Any) -> None:
        self._wire.passes(request)

    def shutdown_request(self, request: Any) -> None:
        """Closed at once: a shutdown first would say an orderly end."""
        self.close_request(request)

"""The connection between an SSH client and a pod: it passes bytes on, and is cut where the test wants it."""

import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.http.connections import LOOPBACK, ConnectionServer, reset_on_close

PIECE_BYTES_MAX = 16 * 1024
IDLE_S_MAX = 120.0
CONNECT_S_MAX = 10.0


@dataclass(frozen=True)
class Cut:
    """A cut: after this many bytes, in both directions together, `then` is called with the port from which
    the client has connected.
    """

    after_bytes: int
    then: Callable[[int], object]


class Cuts:
    """Cuts still to be made, each for one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Cut] = []
        self.made = 0

    def add(self, cut: Cut, times: int) -> None:
        with self._lock:
            self._waiting += [cut] * times

    def next(self) -> Cut | None:
        """Return the cut of a new connection."""
        with self._lock:
            return self._waiting.pop(0) if self._waiting else None

    def note(self) -> None:
        with self._lock:
            self.made += 1


class SshWire:
    """Listens on `port`, and passes bytes to the port `to_port` of loopback. `close` ends open connections.
    `place`: the address to listen at; port 0 stands for any.
    """

    def __init__(self, to_port: int, cuts: Cuts, place: tuple[str, int] = (LOOPBACK, 0)) -> None:
        self.to_port = to_port
        self.cuts = cuts
        self._server = ConnectionServer(self._serve, host=place[0], port=place[1])
        self._server.start()
        self.port = self._server.port

    def close(self) -> None:
        # Called under the fake's lock, also by what a cut calls on a thread of this very server.
        self._server.close(join=False)

    def _serve(self, client: socket.socket) -> None:
        with socket.create_connection((LOOPBACK, self.to_port), timeout=CONNECT_S_MAX) as back:
            self._server.track(back)
            try:
                self._pump(client, back, self.cuts.next())
            finally:
                self._server.forget(back)

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
        """The client sees a reset; the passed bytes reach the pod's sshd, then an end."""
        reset_on_close(client)
        client.close()
        back.shutdown(socket.SHUT_WR)
        # Closed with something unread, it would be reset too, and take with it what the pod has not read yet.
        back.settimeout(IDLE_S_MAX)
        while back.recv(PIECE_BYTES_MAX):
            pass

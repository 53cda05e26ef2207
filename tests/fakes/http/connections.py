"""A TCP server on loopback that starts and stops at once; that of socketserver polls for the request to
stop.
"""

import socket
import struct
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress

LOOPBACK = "127.0.0.1"
BACKLOG = 128


class ConnectionServer:
    """Calls `serve` for each connection, in a thread of its own. It listens from the beginning, and accepts
    from `start` on.

    `broken`: exceptions raised by `serve`, except errors of connections, which clients cause.
    """

    def __init__(
        self,
        serve: Callable[[socket.socket], object],
        *,
        host: str = LOOPBACK,
        port: int = 0,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        self._serve, self._host = serve, host
        self._listener = socket.create_server((host, port), backlog=BACKLOG)
        if receive_buffer_bytes is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.port = int(self._listener.getsockname()[1])
        self.broken: list[str] = []
        self.stopping = False
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._workers: set[threading.Thread] = set()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def start(self) -> None:
        self._acceptor.start()

    def close(self, how: int = socket.SHUT_RDWR, *, join: bool = True) -> None:
        """End all connections, and return when no thread is left, or at once without `join`: a caller that
        holds a lock for which `serve` may wait must not wait for it. `how`: with SHUT_RD a response that is
        being written still reaches its client.
        """
        self.stopping = True
        if self._acceptor.is_alive():
            socket.create_connection((self._host, self.port)).close()  # wakes `accept`
            self._acceptor.join()
        self._listener.close()
        with self._lock:
            workers = list(self._workers)
            for sock in self._open:
                with suppress(OSError):  # the other side may have ended it already
                    socket.socket.shutdown(sock, how)
        for worker in workers if join else []:
            worker.join()

    def track(self, sock: socket.socket) -> None:
        """Register a further socket that `close` has to end so that its reader wakes: of TLS, or to a server
        behind this one.
        """
        with self._lock:
            self._open.add(sock)
        if self.stopping:
            raise ConnectionAbortedError("the server ends")

    def forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
            sock.close()

    def _accept(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            if self.stopping:
                sock.close()
                return
            worker = threading.Thread(target=self._run, args=(sock,), daemon=True)
            with self._lock:
                self._open.add(sock)
                self._workers.add(worker)
            worker.start()

    def _run(self, sock: socket.socket) -> None:
        try:
            self._serve(sock)
        except OSError:
            pass  # the client has disconnected
        except Exception:
            self.broken.append(traceback.format_exc())
        finally:
            self.forget(sock)
            with self._lock:
                self._workers.discard(threading.current_thread())


def reset_on_close(sock: socket.socket) -> None:
    """Make closing the socket a reset for the other side, not an orderly end."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

"""Servers whose answers never end, in each part of an answer."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.fakes.http.connections import ConnectionServer

PAUSE_S = 0.02
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
PARTS = {
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a line of the head": (HEAD + b"x: ", b"x"),
    "a body that goes on": (HEAD + b'\r\n{"ok": true, "ts": "', b" "),
}
"""What comes first, and then again and again."""


@contextmanager
def endless(part: str) -> Iterator[str]:
    """Yield the URL of a server that never comes to an end with this part of its answers."""
    first, more = PARTS[part]

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(first)
        connection.settimeout(PAUSE_S)
        while not server.stopping:
            connection.sendall(more)
            with suppress(TimeoutError):
                if not connection.recv(65536):
                    return

    server = ConnectionServer(serve)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()

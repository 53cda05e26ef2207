"""Requests of `tests.webhook.calls` over real connections."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from prime_train.runs.signing import PROOF_HEADER
from prime_train.runs.store import Store
from prime_train.webhook.app import create_app
from prime_train.webhook.requests import Request
from prime_train.webhook.server.host import ServingHost
from prime_train.webhook.server.http_server import HEAD_S_MAX, UNREAD_MS_MAX, HttpServer
from prime_train.webhook.server.open_files import ConnectionLimits
from tests import waiting
from tests.waiting import HANG_S
from tests.webhook.calls import NOW_S, webhook

LIMITS = ConnectionLimits(connections=1000, backlog=128)


def call(url: str, request: Request) -> tuple[int, bytes]:
    """Send the request unchanged, and return the response."""
    status, body, _ = call_with_proof(url, request)
    return status, body


def call_with_proof(url: str, request: Request) -> tuple[int, bytes, str | None]:
    """Send the request unchanged, and return the response with the proof that it is a fence, if it has
    one.
    """
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=HANG_S)
    try:
        connection.request(
            request.method,
            request.path,
            request.body,
            {k: v.encode("latin-1") for k, v in request.headers.items()},
        )
        response = connection.getresponse()
        return response.status, response.read(), response.getheader(PROOF_HEADER)
    finally:
        connection.close()


def await_true(question: Callable[[], object]) -> None:
    """Return when `question` is answered truthfully."""
    waiting.await_true("what the test waits for", question)


@contextlib.contextmanager
def serving(
    store: Store,
    limits: ConnectionLimits = LIMITS,
    *,
    head_s_max: float = HEAD_S_MAX,
    unread_ms_max: int = UNREAD_MS_MAX,
) -> Iterator[str]:
    """Yield the URL of the application alone, under its HTTP server, whose clock stands still."""
    host = ServingHost(webhook(store), clock=lambda: NOW_S)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = HttpServer(
        create_app(host), listener, limits, head_s_max=head_s_max, unread_ms_max=unread_ms_max
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.listens.wait(HANG_S)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
        thread.join(HANG_S)
        listener.close()
        host.close()


def exchange(url: str, *pieces: bytes) -> bytes:
    """Return what is received on a raw connection until it is closed; pieces are sent as long as the server
    reads.
    """
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=HANG_S) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                break
        received = b""
        while piece := _receive(connection):
            received += piece
    return received


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""

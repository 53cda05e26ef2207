"""Requests of `tests.webhook.calls` over real connections."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import uvicorn

from prime_train.control_plane.server.app import create_app
from prime_train.control_plane.server.asgi_fast_path import AsgiFastPath
from prime_train.control_plane.server.connection import Connection
from prime_train.control_plane.server.request_handler import RequestHandler
from prime_train.control_plane.server.serve import uvicorn_config
from prime_train.control_plane.webhook import Request
from prime_train.core.access.signing import PROOF_HEADER
from prime_train.ports import Store
from tests import waiting
from tests.waiting import HANG_S
from tests.webhook.calls import NOW_S, webhook


def call(url: str, request: Request) -> tuple[int, bytes]:
    """Send the request unchanged, and return the response."""
    status, body, _ = call_with_proof(url, request)
    return status, body


def call_with_proof(url: str, request: Request) -> tuple[int, bytes, str | None]:
    """Send the request unchanged, and return the response with the proof that it is a fence, if it has one."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=HANG_S)
    try:
        connection.request(request.method, request.path, request.body, {k: v.encode("latin-1") for k, v in request.headers.items()})
        response = connection.getresponse()
        return response.status, response.read(), response.getheader(PROOF_HEADER)
    finally:
        connection.close()


def await_true(question: Callable[[], object]) -> None:
    """Return when `question` is answered truthfully."""
    waiting.await_true("what the test waits for", question)


@contextlib.contextmanager
def serving(store: Store, door: str = "bare", connection: type[Connection] = Connection) -> Iterator[str]:
    """Yield the URL of a server with that entry alone, whose clock stands still."""
    gate = RequestHandler(webhook(store), clock=lambda: NOW_S)
    app = create_app(gate)
    config = uvicorn_config(AsgiFastPath(app, gate) if door == "bare" else app)
    config.http = connection
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        await_true(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(HANG_S)
        listener.close()
        gate.close()


def exchange(url: str, *pieces: bytes) -> bytes:
    """Return what is received on a raw connection until it is closed; pieces are sent as long as the server reads."""
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

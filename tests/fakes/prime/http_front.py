"""The HTTP server on loopback: it reads requests, and writes answers or resets the connection."""

import socket
import struct
import sys
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.prime.answering import Target
from tests.fakes.prime.faults import Answer

REQUEST_BYTES_MAX = 1_000_000

Reply = Callable[[Target, str], Answer | None]
"""Given a request and the host that it was sent to; None: the connection is to be reset."""


class HttpFront(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.broken: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no fault of ours; all else is."""
        if not isinstance(sys.exception(), OSError):
            self.broken.append(traceback.format_exc())

    def shutdown_request(self, request: Any) -> None:
        """Closed at once: a shutdown first would say an orderly end where a reset is wanted."""
        self.close_request(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes, and the second would wait for the client's word on the first
    server: HttpFront

    def _serve(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), REQUEST_BYTES_MAX))
        headers = {name.lower(): value for name, value in self.headers.items()}
        told = self.server.reply(Target(self.command, self.path, headers, body), headers.get("host", ""))
        if told is None:
            # Closed with nothing lingering, a connection is reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        self.send_response(told.status)
        for name, value in {"Content-Type": told.content_type, "Content-Length": str(len(told.body)), **told.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(told.body)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: tests look at `requests`."""

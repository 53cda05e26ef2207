"""The HTTP server on loopback: it reads requests, and writes answers or resets the connection."""

import socket
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.prime.faults import Answer

REQUEST_BYTES_MAX = 10_000_000


@dataclass(frozen=True)
class Target:
    """`method` and `target` as they came; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def path(self) -> str:
        """Without the query; what was escaped still is."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


Reply = Callable[[Target], Answer | None]
"""None: the connection is to be reset."""


class HttpFront(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, reply: Reply, port: int = 0) -> None:
        self.reply = reply
        self.broken: list[str] = []
        super().__init__(("127.0.0.1", port), _Handler)

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
        told = self.server.reply(Target(self.command, self.path, headers, body))
        if told is None:
            # Closed with nothing lingering, a connection is reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        self.send_response(told.status)
        bodiless = told.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        about_body = {} if bodiless else {"Content-Type": told.content_type, "Content-Length": str(len(told.body))}
        for name, value in {**about_body, **told.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if not bodiless:
            self.wfile.write(told.body)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: tests look at `requests`."""

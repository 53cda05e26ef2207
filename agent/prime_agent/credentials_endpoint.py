"""Loopback endpoint that serves the attempt's bucket keys to the trainer's own tools, by the protocol for
container credentials of AWS tools: they find the address in their environment, and request keys again before
the old ones expire.

A request must contain a token from a file that only this user can read. A request with a wrong Host header is
refused, which stops web pages that reach the endpoint by DNS rebinding. Slow requests are cut off, and at
most `AT_ONCE_MAX` are served concurrently.
"""

import hmac
import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseServer, TCPServer, ThreadingMixIn
from typing import Any

from prime_train.runs.wire import PodKeys

PATH = "/keys"
TOKEN_FILE = "keys-token"
TOKEN_BYTES = 32
REQUEST_S_MAX = 2.0
"""Seconds for receiving a complete request; AWS tools wait no longer for the response either."""
AT_ONCE_MAX = 32
WAITING_MAX = 128
"""Length of the queue of connections; a data loader's workers all start at once."""
OWN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
)
"""Variables that give a process AWS keys of its own."""
REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Variables for the bucket's region: some tools read the first, others the second."""
ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

_log = logging.getLogger(__name__)


class KeyLoan:
    """Endpoint that serves the keys from its creation until the process ends.

    `newest` returns the current keys with their remaining validity. Raises OSError if no port is available or
    the token cannot be written into `folder`.
    """

    def __init__(self, newest: Callable[[], PodKeys], folder: Path, wall_s: Callable[[], float]) -> None:
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._file = folder / TOKEN_FILE
        _write_privately(self._file, self._token)
        self._server = _Server(self._token, newest, wall_s)
        threading.Thread(target=self._server.serve_forever, name="key-loan", daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which the trainer's tools find the endpoint."""
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{self._server.host}{PATH}",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self._file),
        }

    def secrets(self) -> dict[str, str]:
        return {"AWS_CONTAINER_AUTHORIZATION_TOKEN": self._token}


def with_loan(env: Mapping[str, str], loan: KeyLoan | None, place: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the endpoint's address and the bucket's region and endpoint; unchanged if
    it has AWS keys of its own.
    """
    if loan is None or any(env.get(name) for name in OWN):
        return dict(env)
    region = next((known[name] for known in (env, place) for name in REGION if known.get(name)), None)
    where = dict.fromkeys(REGION, region) if region else {}
    where |= {name: place[name] for name in ENDPOINT if name in place}
    return {**where, **env, **loan.environment}


def _write_privately(path: Path, text: str) -> None:
    """Write a file that no other user can read at any moment, not even while it is incomplete."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class _Server(ThreadingMixIn, TCPServer):
    daemon_threads = True
    request_queue_size = WAITING_MAX

    def __init__(self, token: str, newest: Callable[[], PodKeys], wall_s: Callable[[], float]) -> None:
        self.token, self.newest, self.wall_s = token, newest, wall_s
        self._free = threading.BoundedSemaphore(AT_ONCE_MAX)
        super().__init__(("127.0.0.1", 0), _Handler)
        self.host = f"127.0.0.1:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log that the client disconnected or took too long, without the request, which may contain the
        token.
        """
        _log.info("a request for keys was disconnected")


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S_MAX

    def setup(self) -> None:
        super().setup()
        # The socket's timeout applies to each read; this timer limits the whole request.
        self._end = threading.Timer(REQUEST_S_MAX, self._cut_off)
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def do_GET(self) -> None:
        server = _server(self.server)
        status, body = self._decided(server), b""
        if status is HTTPStatus.OK:
            keys = server.newest()
            status, body = (
                (HTTPStatus.OK, _shown(keys, server.wall_s()))
                if keys.valid_s
                else (HTTPStatus.SERVICE_UNAVAILABLE, b"")
            )
        self.send_response_only(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the request may contain the token."""

    def _decided(self, server: "_Server") -> HTTPStatus:
        if self.headers.get_all("host") != [server.host]:
            return HTTPStatus.FORBIDDEN
        if self.path != PATH:
            return HTTPStatus.NOT_FOUND
        given = self.headers.get("authorization", "").encode(errors="replace")
        return HTTPStatus.OK if hmac.compare_digest(given, server.token.encode()) else HTTPStatus.UNAUTHORIZED

    def _cut_off(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _shown(keys: PodKeys, now_s: float) -> bytes:
    """Return the keys in the format of a container's endpoint. The expiry is given by this machine's clock,
    because the trainer's tools compare it with that clock.
    """
    ends = datetime.fromtimestamp(int(now_s) + keys.valid_s, UTC)
    return json.dumps(
        {
            "AccessKeyId": keys.access_key_id,
            "SecretAccessKey": keys.secret_access_key,
            "Token": keys.session_token,
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    ).encode()


def _server(server: BaseServer) -> _Server:
    assert isinstance(server, _Server)
    return server

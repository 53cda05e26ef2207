"""The attempt's keys to the bucket for the trainer's own tools, on loopback, in the way that AWS's tools ask a container for its keys: they
find the address in their environment, and ask again before the keys end.

Who asks must say a token that lies in a file only this user can read. A page in somebody's browser that was led here by a false name of
its own is known by that name. Whoever asks slowly is cut off, and no more are listened to at once than `AT_ONCE_MAX`.
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

from prime_train.core.wire import PodKeys

PATH = "/keys"
TOKEN_FILE = "keys-token"
TOKEN_BYTES = 32
REQUEST_S_MAX = 2.0
"""AWS's tools wait no longer either."""
AT_ONCE_MAX = 32
WAITING_MAX = 128
"""Workers of a data loader begin all at once."""
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
"""Whoever sets one of these has keys of his own."""
REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Some tools read the one, some the other."""
ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

_log = logging.getLogger(__name__)


class KeyLoan:
    """Answers from the moment it is made until the process ends. `newest`: the keys there are, with what is left of their life. Raises
    OSError where there is no port, or the token cannot be put into `folder`."""

    def __init__(self, newest: Callable[[], PodKeys], folder: Path, wall_s: Callable[[], float]) -> None:
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._file = folder / TOKEN_FILE
        _write_privately(self._file, self._token)
        self._server = _Server(self._token, newest, wall_s)
        threading.Thread(target=self._server.serve_forever, name="key-loan", daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """What the trainer's tools find it by."""
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{self._server.host}{PATH}",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self._file),
        }

    def secrets(self) -> dict[str, str]:
        return {"AWS_CONTAINER_AUTHORIZATION_TOKEN": self._token}


def with_loan(env: Mapping[str, str], loan: KeyLoan | None, place: Mapping[str, str]) -> dict[str, str]:
    """The environment with the address of the keys, and with where the bucket is; as it was, where it has keys of its own."""
    if loan is None or any(env.get(name) for name in OWN):
        return dict(env)
    region = next((known[name] for known in (env, place) for name in REGION if known.get(name)), None)
    where = dict.fromkeys(REGION, region) if region else {}
    where |= {name: place[name] for name in ENDPOINT if name in place}
    return {**where, **env, **loan.environment}


def _write_privately(path: Path, text: str) -> None:
    """Nobody else can read it, not even before it is whole."""
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
        except RuntimeError:  # no thread can be had
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone, or took too long. Nothing of the request is told: it may hold the token."""
        _log.info("somebody who asked for keys was cut off")


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S_MAX

    def setup(self) -> None:
        super().setup()
        # The time-out is that of each piece; this is that of the whole.
        self._end = threading.Timer(REQUEST_S_MAX, self._cut_off)
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def do_GET(self) -> None:
        server = _server(self.server)
        status, said = self._decided(server), b""
        if status is HTTPStatus.OK:
            keys = server.newest()
            status, said = (HTTPStatus.OK, _shown(keys, server.wall_s())) if keys.valid_s else (HTTPStatus.SERVICE_UNAVAILABLE, b"")
        self.send_response_only(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: what is asked may hold the token."""

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
    """As a container's address answers. The end is by this machine's clock, as who reads it holds it against the same one."""
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

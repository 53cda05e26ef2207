"""Signed requests to one AWS service, over connections that are kept for reuse."""

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from prime_train.adapters.aws_http.connection import Connection, HttpResponse, ProtocolError, trusted
from prime_train.adapters.aws_http.signature import Signer

IDLE_MAX = 16


class Unanswered(Exception):
    """No response, or only a part of one, arrived; it is unknown whether the request took effect."""


class Service:
    """A client of one AWS service. If `endpoint` is None, Amazon's endpoint in that region is used. Raises KeyError if the environment has
    no keys. Thread-safe."""

    def __init__(
        self, name: str, environment: Mapping[str, str], region: str, endpoint: str | None = None, *, connect_s: float, answer_s: float
    ) -> None:
        at = urlsplit(endpoint or f"https://{name}.{region}.amazonaws.com")
        self._host, self._is_tls = at.netloc, at.scheme == "https"
        self._connect_s, self._answer_s = connect_s, answer_s
        self._signer = Signer(environment, region, name)
        if self._is_tls:
            trusted()  # loaded now rather than during a request
        self._idle: list[Connection] = []

    def ask(self, path: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send one POST without retries and return its response. Raises `Unanswered`."""
        connection = None
        try:
            connection = self._connection()
            response = connection.post(path, self._signer.headers(self._host, path, headers, body, at_s=time.time()), body)
        except (OSError, ProtocolError) as error:
            if connection is not None:
                connection.close()
            self.close()  # the cause has probably broken the other connections too
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        if response.keeps and len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        """Close the idle connections. Later requests open new ones."""
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _connection(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return Connection(self._host, is_tls=self._is_tls, connect_s=self._connect_s, answer_s=self._answer_s)

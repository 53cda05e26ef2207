"""Requests of `tests.webhook.asking` over real connections."""

import http.client
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from prime_train.webhook import Request

TIMEOUT_S = 20


def call(url: str, request: Request) -> tuple[int, bytes]:
    """Sends it as it is, and the answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    try:
        connection.request(request.method, request.path, request.body, {k: v.encode("latin-1") for k, v in request.headers.items()})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def await_true(question: Callable[[], object], *, limit_s: float = TIMEOUT_S) -> None:
    """Returns when `question` is answered truthfully; fails after `limit_s`."""
    pause = threading.Event()
    for _ in range(int(limit_s / 0.01)):
        if question():
            return
        pause.wait(0.01)
    raise AssertionError(f"not within {limit_s} s")

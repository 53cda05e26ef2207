"""A server that fails and never ends its answer holds nobody up: neither the calls of adapters nor alerts."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from prime_train.alerts.url import WebhookNotifier
from prime_train.errors import TemporaryError
from prime_train.http import Http
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Alert, Severity
from tests.waiting import HANG_S

ALERT = Alert(
    key="a",
    run_id="demo-1",
    kind=AlertKind.STALLED,
    severity=Severity.ERROR,
    title="late",
    text="late",
    at_s=1,
)


def answer(connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 503 Unavailable\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)


@pytest.fixture
def url() -> Iterator[str]:
    """Yield the address of a server whose answers are 503 and do not end."""
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda url: Http(url, pause_s=0.0).ask("GET", "/pods"), id="a call that is repeated"),
        pytest.param(lambda url: WebhookNotifier(None, f"{url}/hook").send(ALERT, None), id="an alert"),
    ],
)
def test_an_answer_without_end_is_given_up(call: Callable[[str], object], url: str) -> None:
    errors: list[BaseException] = []

    def made() -> None:
        try:
            call(url)
        except TemporaryError as error:
            errors.append(error)

    caller = threading.Thread(target=made, daemon=True)
    caller.start()
    caller.join(HANG_S)
    assert not caller.is_alive(), "it still reads"
    assert len(errors) == 1

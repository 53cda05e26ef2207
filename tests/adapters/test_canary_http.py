import socket

import pytest

from prime_train.errors import TemporaryError
from prime_train.runs.breaker import Watch
from prime_train.stores.memory import MemoryStore
from prime_train.watch.canary_http import CanaryHttp
from prime_train.webhook.server.serve import Server
from tests.fakes.http import CutRequest, Response, ScriptedServer
from tests.webhook.calls import MASTER, NOW_S, webhook


def test_it_sings_while_webhook_and_store_are_well() -> None:
    with Server(webhook(MemoryStore())) as server:
        assert CanaryHttp(server.url, MASTER).is_answering(NOW_S)
        assert CanaryHttp(server.url + "/", MASTER).is_answering(NOW_S)


def test_it_is_silent_with_another_key() -> None:
    with Server(webhook(MemoryStore())) as server:
        assert not CanaryHttp(server.url, b"another").is_answering(NOW_S)


class Away(MemoryStore):
    def watch(self) -> Watch:
        raise TemporaryError("the disk is gone")


def test_it_is_silent_when_the_store_is_away() -> None:
    with Server(webhook(Away())) as server:
        assert not CanaryHttp(server.url, MASTER).is_answering(NOW_S)


@pytest.mark.parametrize(
    "answer",
    [
        CutRequest(),
        Response(200),
        Response(200, b'{"nonce":"another"}'),
        Response(200, b"x" * 10_000),
        Response(302),
    ],
)
def test_it_is_silent_when_something_else_answers(answer: Response) -> None:
    with ScriptedServer(answer) as there:
        assert not CanaryHttp(there.url, MASTER).is_answering(NOW_S)


def test_it_is_silent_when_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        assert not CanaryHttp(url, MASTER).is_answering(NOW_S)


@pytest.mark.parametrize("url", ["not a url", "http://", "http://[broken"])
def test_it_is_silent_where_there_is_no_address(url: str) -> None:
    assert not CanaryHttp(url, MASTER).is_answering(NOW_S)

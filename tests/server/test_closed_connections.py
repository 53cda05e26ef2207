"""Connections of strangers that are closed again: what a server keeps of them."""

import asyncio
import gc
import socket
import struct
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from fastapi import Request

from prime_train.stores.memory import MemoryStore
from tests.server.calling import await_true, call, serving
from tests.waiting import HANG_S
from tests.webhook.calls import ask, heartbeat, stored

CONNECTIONS = 60
KEPT_MAX = 5
"""Those that this test itself has just closed may still be there."""
SENT = {
    "nothing": b"",
    "half a head": b"GET /healthz HTTP/1.1\r\nhost:",
    "no request": b"\x00\x01\r\n\r\n",
    "a request without its body": b"POST /v1/canary HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n123",
    "a request": b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
    "a request for a page": b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n",
}
ANSWERED = ("no request", "a request", "a request for a page")


@pytest.fixture
def collector_off() -> Iterator[None]:
    """Keep the collector from hiding what would wait for it: a control plane that serves calls it rarely."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def kept() -> int:
    """Return the number of requests that the process keeps, answered or not."""
    return sum(isinstance(one, Request | asyncio.Task) for one in gc.get_objects())


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("what", SENT)
def test_nothing_is_kept_of_connections_that_strangers_have_closed(what: str, resets: bool) -> None:
    store = MemoryStore()
    stored(store)
    with serving(store) as url:
        parts, before = urlsplit(url), kept()
        for _ in range(CONNECTIONS):
            stranger = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=HANG_S)
            stranger.sendall(SENT[what])
            if what in ANSWERED:
                assert stranger.recv(1) == b"H"
            if resets:
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stranger.close()
        for seq in range(4, 7):
            assert call(url, ask("heartbeat", heartbeat(seq)))[0] == 200

        await_true(lambda: kept() - before <= KEPT_MAX)

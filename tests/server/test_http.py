"""The application over real connections: its responses equal those that it gives without a server.
`tests/lambdas/test_heartbeats.py` asks the same requests of the Lambda.
"""

import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prime_train.runs.run import RunState
from prime_train.runs.wire import BODY_BYTES_MAX, PROOF_HEADER, Outcome, Reply
from prime_train.stores.memory import MemoryStore
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.webhook.request_body import BODY_DISCARDED_BYTES_MAX
from prime_train.webhook.server.serve import Server
from tests import builders as b
from tests.server.calling import call, call_with_proof, exchange, serving
from tests.waiting import HANG_S
from tests.webhook.calls import CASES, NOW_S, Case, ask, handle, heartbeat, stored, webhook


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="module")
def url(store: MemoryStore) -> Iterator[str]:
    with serving(store) as here:
        yield here


@pytest.fixture
def fresh(store: MemoryStore) -> MemoryStore:
    """Reset the module's store."""
    store.__init__()  # type: ignore[misc] # one server serves all cases; each finds the same run
    stored(store)
    return store


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_server_answers_as_the_application_does(case: Case, url: str, fresh: MemoryStore) -> None:
    alone = MemoryStore()
    before = stored(alone)
    expected = handle(webhook(alone), case.request)

    status, body, proof = call_with_proof(url, case.request)

    assert (status, body, proof) == (expected.status, expected.body, dict(expected.headers).get(PROOF_HEADER))
    assert (fresh.load(b.RUN_ID) == alone.load(b.RUN_ID)) is True
    assert (fresh.load(b.RUN_ID) != before) is case.changes


def test_a_body_over_the_limit_that_does_not_say_its_length_is_refused(url: str, fresh: MemoryStore) -> None:
    before = fresh.load(b.RUN_ID)
    path = f"/v1/runs/{b.RUN_ID}/2/heartbeat"
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    chunk = b"2000\r\n" + b" " * 0x2000 + b"\r\n"

    answer = exchange(url, head, *[chunk] * (BODY_BYTES_MAX // 0x2000 + 2), b"0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert fresh.load(b.RUN_ID) == before


def test_a_body_without_end_is_cut_off(url: str, fresh: MemoryStore) -> None:
    path = f"/v1/runs/{b.RUN_ID}/2/heartbeat"
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent = 4 * BODY_DISCARDED_BYTES_MAX // 0x10000

    answer = exchange(url, head, *[chunk] * sent)

    assert answer[:13] in (b"HTTP/1.1 413 ", b"")  # the answer may be lost to whoever goes on sending


def test_a_body_that_says_it_is_huge_is_refused_before_it_is_sent(url: str, fresh: MemoryStore) -> None:
    head = (
        f"POST /v1/runs/{b.RUN_ID}/2/heartbeat HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n"
    ).encode()

    answer = exchange(url, head + b" ")

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


def test_an_unusual_length_is_refused(url: str, fresh: MemoryStore) -> None:
    answer = exchange(url, b"POST /v1/canary HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_client_that_leaves_in_mid_body_changes_nothing(url: str, fresh: MemoryStore) -> None:
    before = fresh.load(b.RUN_ID)
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=HANG_S) as connection:
        connection.sendall(
            f"POST /v1/runs/{b.RUN_ID}/2/heartbeat HTTP/1.1\r\nhost: x\r\ncontent-length: "
            f"50\r\n\r\n{{".encode()
        )

    assert call(url, ask("heartbeat", heartbeat(7)))[0] == 200  # the server is well
    assert fresh.load(b.RUN_ID) == before


def test_a_query_is_not_part_of_what_is_signed(url: str, fresh: MemoryStore) -> None:
    request = ask("heartbeat", heartbeat(8))

    assert call(url, request._replace(path=request.path + "?x=1"))[0] == 200


def test_the_documentation_shows_what_is_reported_on_the_wire(url: str) -> None:
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=HANG_S) as response:
        schema = json.load(response)

    assert set(schema["paths"]) == {
        "/v1/runs/{run}/{attempt}/heartbeat",
        "/v1/runs/{run}/{attempt}/commit",
        "/v1/runs/{run}/{attempt}/exit",
        "/v1/runs/{run}/{attempt}/bootstrap",
        "/v1/runs/{run}/{attempt}/keys",
        "/v1/canary",
        "/healthz",
    }
    named = set(json.dumps(schema).split('"#/components/schemas/')[1:])
    assert {name.split('"')[0] for name in named} <= set(schema["components"]["schemas"])


def test_heartbeats_that_come_at_once_are_all_stored_before_they_are_answered(tmp_path: Path) -> None:
    runs, heartbeats = [f"run-{number}" for number in range(20)], range(8, 13)
    store = SqliteStore(tmp_path / "control.sqlite")
    for run_id in runs:
        stored(store, b.record(b.run(RunState.TRAINING, run_id=run_id), seq=7))

    def agent(run_id: str) -> list[int]:
        """Each heartbeat is in the file when its response arrives: another connection of another store sees
        it.
        """
        seen = []
        for seq in heartbeats:
            status, body = call(here, ask("heartbeat", b.heartbeat(seq, run=run_id), run=run_id, attempt=1))
            assert (status, Reply.model_validate_json(body).outcome) == (200, Outcome.OK)
            other = SqliteStore(tmp_path / "control.sqlite")
            record = other.load(run_id)
            other.close()
            seen.append(record.lease.seq if record else 0)
        return seen

    with serving(store) as here, ThreadPoolExecutor(len(runs)) as agents:
        seen = list(agents.map(agent, runs))

    assert seen == [list(heartbeats)] * len(runs)
    store.close()


def test_a_server_tells_time_by_its_own_clock() -> None:
    with Server(webhook(MemoryStore()), clock=lambda: NOW_S) as server:
        status, body = call(server.url, ask("bootstrap"))

    assert (status, json.loads(body)["now_s"]) == (409, NOW_S)


def test_the_documentation_loads_nothing_from_elsewhere(url: str) -> None:
    with urllib.request.urlopen(f"{url}/docs", timeout=HANG_S) as answer:
        page, policy = answer.read().decode(), answer.headers["content-security-policy"]
    assert "heartbeat" in page
    assert not re.search(r"<script|<link|src=|//", page)
    assert policy.startswith("default-src 'none'")

"""`prime-train serve` attacked over real connections."""

import contextlib
import http.client
import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from prime_train.app.home import Home
from prime_train.runs.run import RunState
from prime_train.runs.store import Store
from prime_train.runs.wire import STORE_PATH
from prime_train.stores.memory import MemoryStore
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.webhook.server.serve import Server
from tests import builders as b
from tests.server.calling import await_true, exchange, serving
from tests.waiting import HANG_S
from tests.webhook.attacked import all_kept, judge, requested, seen, two_runs
from tests.webhook.attacks import KINDS, Attack, Door, Keys, attacks
from tests.webhook.calls import ATTEMPT, MASTER, NOW_S, SECRETS, ask, handle, heartbeat, stored, webhook
from tests.webhook.leaks import keys_of, leaks

ATTACKS = [attack for kind in KINDS for attack in attacks(kind, Door.CONNECTION, MASTER, NOW_S)]
HIDDEN = {**SECRETS, **keys_of(MASTER)}


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    store = MemoryStore()
    two_runs(store)
    return store


@pytest.fixture(scope="module")
def url(store: MemoryStore) -> Iterator[str]:
    with Server(webhook(store), clock=lambda: NOW_S) as server:
        yield server.url


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_changes_nothing_and_is_answered_in_the_one_form(
    attack: Attack, url: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    before = seen(store)
    with caplog.at_level(logging.DEBUG):
        answer = requested(url, attack.sent)
    judge(attack, answer, HIDDEN)
    assert seen(store) == before
    assert "Traceback" not in caplog.text
    assert not leaks(caplog.text, HIDDEN)


HEAD = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
POST = b"POST /v1/canary HTTP/1.1\r\nhost: x\r\n"
END = b"connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("message", "status"),
    [
        pytest.param(HEAD + b"x: a\r\n b: c\r\n" + END, 400, id="a header that goes on in the next line"),
        pytest.param(HEAD + b"x: a\x00b\r\n" + END, 400, id="a header with a zero byte"),
        pytest.param(HEAD + b"x: a\rb\r\n" + END, 400, id="a header with half a line's end"),
        pytest.param(HEAD + b"x y: a\r\n" + END, 400, id="a header's name with a space"),
        pytest.param(HEAD + b"\xe9: a\r\n" + END, 400, id="a header's name beyond ASCII"),
        pytest.param(HEAD + b"content-length: 1\r\ncontent-length: 2\r\n" + END, 400, id="two lengths"),
        pytest.param(
            HEAD + b"content-length: 4\r\ntransfer-encoding: chunked\r\n" + END + b"0\r\n\r\n",
            200,
            id="a length and no length",
        ),
        pytest.param(
            HEAD + b"transfer-encoding: chunked, gzip\r\n" + END, 400, id="a way of sending that nobody knows"
        ),
        pytest.param(POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n", 400, id="a piece without a length"),
        pytest.param(HEAD.replace(b"/healthz", b"/health\xe9") + END, 400, id="a path beyond ASCII"),
        pytest.param(HEAD.replace(b"GET", b"FETCH") + END, 405, id="a method that nobody knows"),
        pytest.param(HEAD.replace(b"GET /healthz", b"CONNECT evil.example:443") + END, 404, id="a tunnel"),
        pytest.param(HEAD.replace(b"1.1", b"9.9") + END, 400, id="a version that is yet to come"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, id="TLS"),
        pytest.param(
            HEAD.replace(b"/healthz", b"http://evil.example/v1/store/about") + END,
            405,
            id="another server's address",
        ),
        pytest.param(
            HEAD + b"upgrade: websocket\r\nconnection: upgrade\r\n" + END,
            200,
            id="an upgrade, which is not made",
        ),
    ],
)
def test_what_is_no_request_is_refused(message: bytes, status: int, url: str) -> None:
    head, _, body = exchange(url, message).partition(b"\r\n\r\n")
    if status == 0:
        assert head == b""
        return
    assert head.startswith(b"HTTP/1.1 %d " % status), head
    assert body == b"" or "now_s" in json.loads(body)


# ------------------------------------------------------------------------------------------------------------
# those who take their time


HASTY_S = 0.3


@pytest.fixture(scope="module")
def hasty() -> Iterator[str]:
    with serving(MemoryStore(), head_s_max=HASTY_S) as here:
        yield here


def dripped(url: str, first: bytes, drop: bytes) -> bytes:
    """Return what is received when data is sent in small pieces until the server closes the connection."""
    received = b""
    with socket.create_connection(
        (urlsplit(url).hostname or "", urlsplit(url).port or 0), timeout=0.02
    ) as connection:
        connection.sendall(first)
        for _ in range(int(HANG_S / 0.02)):
            try:
                piece = connection.recv(65536)
                if not piece:
                    return received
                received += piece
            except TimeoutError:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(drop)
            except ConnectionResetError:
                return received
    raise AssertionError("the connection is kept")


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"", b"\r\n", id="empty lines"),
        pytest.param(b"POST /v1/canary HTTP/1.1\r\n", b"x", id="a header's name without end"),
        pytest.param(HEAD, b"x: y\r\n", id="headers without end"),
        pytest.param(HEAD + b"\r\n", b"\r\n", id="empty lines after a request"),
        pytest.param(HEAD + b"\r\nG", b"", id="half a request after a request"),
    ],
)
def test_who_never_comes_to_an_end_is_sent_away(first: bytes, drop: bytes, hasty: str) -> None:
    assert dripped(hasty, first, drop).count(b"HTTP/1.1 200 OK") == first.count(b"\r\n\r\n")


def test_who_never_reads_is_sent_away() -> None:
    """A small machine has memory for some responses that are never read, but not for any number of them."""
    store = MemoryStore()
    for number in range(60):
        stored(
            store,
            b.record(
                b.run(RunState.TRAINING, attempt=ATTEMPT, run_id=f"run-{number}", why="x" * 60_000), seq=7
            ),
        )
    sent = Keys(MASTER, NOW_S).operator.sent("POST", f"{STORE_PATH}list_runs", b"[]")
    head = "".join(f"{name}: {value}\r\n" for name, value in (*sent.headers, ("content-length", "2")))
    with serving(store, unread_ms_max=300) as here, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((urlsplit(here).hostname or "", urlsplit(here).port or 0))
        connection.sendall(f"POST {sent.target} HTTP/1.1\r\nhost: x\r\n{head}\r\n[]".encode())
        await_true(lambda: _is_held(connection))
        await_true(lambda: not _is_held(connection))


def _is_held(connection: socket.socket) -> bool:
    """Return whether the other end, which is in this process too, is still open: a client that does not read
    cannot notice its end.
    """
    port = connection.getsockname()[1]
    return any(one.raddr and one.raddr.port == port for one in psutil.Process().net_connections("tcp"))


def test_who_asks_thousands_of_times_at_once_is_answered_once(url: str) -> None:
    """Each response would admit as many more requests as arrive at once, and all of them would wait in
    memory.
    """
    answered = exchange(url, (HEAD + b"\r\n") * 20_000)
    assert answered.count(b"HTTP/1.1 200 OK") == 1


def test_a_connection_is_kept_from_one_signed_request_to_the_next_and_not_for_strangers() -> None:
    store = MemoryStore()
    stored(store)
    with serving(store) as here:
        connection = http.client.HTTPConnection(urlsplit(here).netloc, timeout=HANG_S)
        connection.connect()
        kept = connection.sock
        for request in (
            ask("heartbeat", heartbeat(8)),
            ask("heartbeat", b"{}"),
            ask("bootstrap"),
            ask("mood"),
        ):
            assert connection.sock is kept
            connection.request(request.method, request.path, request.body, dict(request.headers))
            connection.getresponse().read()
        assert connection.sock is None
        for path in ("/healthz", "/docs", "/openapi.json", "/nothing", f"/v1/runs/{b.RUN_ID}/2/bootstrap"):
            connection.request("GET", path)
            assert connection.getresponse().read()
            assert connection.sock is None, path


# ------------------------------------------------------------------------------------------------------------
# what is handed out


NEVER_HANDED_OUT = (
    "PRIME_TRAIN_MASTER_KEY",
    "PRIME_API_KEY",
    "PRIME_TRAIN_GITHUB_APP_KEY",
    "SLACK_WEBHOOK_URL",
)
CLOUD_KEYS = (
    "AWS_SECRET_ACCESS_KEY",
    "R2_SECRET_ACCESS_KEY",
    "B2_APPLICATION_KEY",
    "GS_ACCESS_KEY_ID",
    "GITHUB_TOKEN",
)


@pytest.mark.parametrize("listed", ["", "HF_TOKEN", "*", "HF_TOKEN,*_*"])
@pytest.mark.parametrize("name", NEVER_HANDED_OUT + CLOUD_KEYS)
def test_no_run_gets_what_the_control_plane_is_trusted_with(name: str, listed: str, tmp_path: Path) -> None:
    """The right to write a config does not include renting machines, stopping other users' runs, or access to
    the bucket and the cloud.
    """
    env = {
        "PRIME_TRAIN_HOME": str(tmp_path),
        "PRIME_TRAIN_MASTER_KEY": "5e" * 32,
        "HF_TOKEN": "hf-secret-value",
        name: "7a" * 32,
    }
    home = Home(tmp_path, {**env, "PRIME_TRAIN_RUN_SECRETS": listed})
    run = b.run(RunState.TRAINING, attempt=ATTEMPT, spec=b.spec(secrets=("HF_TOKEN", name)))
    stored(home.store(), b.record(run))
    answer = handle(home.webhook(), ask("bootstrap", master=home.master()))
    assert (answer.status, name in answer.body.decode()) == (503, True)
    assert not leaks(answer.body.decode(), env)


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        ("", "WANDB_API_KEY"),
        ("JUDGE_*", "JUDGE_KEY"),
        ("HF_TOKEN AWS_*", "AWS_SECRET_ACCESS_KEY"),
        ("*", "JUDGE_KEY"),
    ],
)
def test_a_run_gets_what_the_operators_list_names(listed: str, name: str, tmp_path: Path) -> None:
    env = {"PRIME_TRAIN_MASTER_KEY": "5e" * 32, name: "7a" * 32, "PRIME_TRAIN_RUN_SECRETS": listed}
    home = Home(tmp_path, env)
    stored(home.store(), b.record(b.run(RunState.TRAINING, attempt=ATTEMPT, spec=b.spec(secrets=(name,)))))
    answer = handle(home.webhook(), ask("bootstrap", master=home.master()))
    assert (answer.status, json.loads(answer.body)["secrets"]) == (200, {name: "7a" * 32})


def test_a_run_gets_nothing_that_the_operators_list_no_longer_names(tmp_path: Path) -> None:
    env = {
        "PRIME_TRAIN_MASTER_KEY": "5e" * 32,
        "HF_TOKEN": "hf-secret-value",
        "PRIME_TRAIN_RUN_SECRETS": "JUDGE_*",
    }
    home = Home(tmp_path, env)
    stored(
        home.store(), b.record(b.run(RunState.TRAINING, attempt=ATTEMPT, spec=b.spec(secrets=("HF_TOKEN",))))
    )
    answer = handle(home.webhook(), ask("bootstrap", master=home.master()))
    assert (answer.status, "PRIME_TRAIN_RUN_SECRETS" in answer.body.decode()) == (503, True)


# ------------------------------------------------------------------------------------------------------------
# odd, and allowed


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_is_unusual_and_allowed_can_be_read_again(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "control.sqlite")
    two_runs(store)
    with Server(webhook(store), clock=lambda: NOW_S) as server:
        all_kept(lambda sent: requested(server.url, sent), Keys(MASTER, NOW_S))


def test_a_wake_reported_again_only_has_the_run_looked_at_once_more() -> None:
    store = MemoryStore()
    two_runs(store)
    sent = Keys(MASTER, NOW_S).operator.sent(
        "POST", f"{STORE_PATH}wake", json.dumps([b.RUN_ID, NOW_S]).encode()
    )
    with Server(webhook(store), clock=lambda: NOW_S) as server:
        once, twice = [(requested(server.url, sent).status, store.load(b.RUN_ID)) for _ in range(2)]
    assert (once[0], twice[0]) == (200, 200)
    assert once[1] is not None
    assert twice[1] is not None
    assert replace(twice[1].run, version=0) == replace(once[1].run, version=0)
    assert twice[1].lease == once[1].lease

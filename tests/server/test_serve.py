import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from prime_train.errors import PermanentError
from prime_train.stores.memory import MemoryStore
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.text.explained_errors import explained
from prime_train.webhook.server.serve import Server
from tests.server.calling import call
from tests.waiting import HANG_S
from tests.webhook.calls import CASES, NOW_S, stored, webhook

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from prime_train.buckets.folder import FolderBucket
from prime_train.providers.memory import MemoryPods
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.watch.context import Context
from prime_train.webhook.server.serve import run_server
from tests.webhook.calls import MASTER, webhook

home = Path(sys.argv[1])
store = SqliteStore(home / "control.sqlite")
world = Context(store, FolderBucket(home / "bucket", make=True), MemoryPods(), MASTER, "")
run_server(webhook(store), world, interval_s=0.2, announce=lambda url: print(url, flush=True))
print("stopped", flush=True)
"""


def test_a_server_leaves_neither_thread_nor_port_behind() -> None:
    before = {thread.name for thread in threading.enumerate()}
    with Server(webhook(MemoryStore())) as server:
        url = server.url
        for case in CASES[:15]:
            call(url, case.request)

    assert {thread.name for thread in threading.enumerate()} == before
    with pytest.raises(ConnectionRefusedError):
        call(url, CASES[0].request)


def test_a_server_is_there_when_start_returns() -> None:
    with (
        Server(webhook(MemoryStore())) as server,
        urllib.request.urlopen(f"{server.url}/healthz", timeout=HANG_S) as response,
    ):
        assert response.status == 200


def test_two_servers_live_side_by_side() -> None:
    with Server(webhook(MemoryStore())) as one, Server(webhook(MemoryStore())) as other:
        assert one.url != other.url
        # their clocks are real
        assert [call(url, CASES[0].request)[0] for url in (one.url, other.url)] == [
            401,
            401,
        ]


def test_a_port_in_use_is_reported_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PermanentError, match=f"port {port} of 127.0.0.1 is in use") as error:
            Server(webhook(MemoryStore()), port=port).start()
        message = explained(error.value)[1]
        assert re.search(
            "stop the process that listens there, or, if no run has a machine, .*prime-train serve --port 0",
            message,
        ), message


@pytest.mark.parametrize(("host", "port"), [("203.0.113.7", 0), ("no such host", 0), ("127.0.0.1", 99_999)])
def test_an_address_that_cannot_be_had_is_reported(host: str, port: int) -> None:
    with pytest.raises(PermanentError, match=str(port)):
        Server(webhook(MemoryStore()), host, port).start()


def test_a_stopped_server_can_be_followed_by_another_on_its_port() -> None:
    with Server(webhook(MemoryStore())) as first:
        port = int(first.url.rsplit(":", 1)[1])
    with Server(webhook(MemoryStore()), port=port) as second:
        assert second.url == first.url


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    Server(webhook(MemoryStore())).stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_webhook_and_watcher(number: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/healthz", timeout=HANG_S) as response:
            assert json.load(response)["version"]

        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
        process.wait()

    assert (out, err, process.returncode) == ("stopped\n", "", 0)


def test_what_was_answered_is_there_after_the_server(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "control.sqlite")
    stored(store)
    with Server(webhook(store), clock=lambda: NOW_S) as server:
        assert call(server.url, CASES[0].request)[0] == 200
    store.close()

    record = SqliteStore(tmp_path / "control.sqlite").load(CASES[0].request.path.split("/")[3])

    assert record is not None
    assert record.lease.seq == 8

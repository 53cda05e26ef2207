"""What an invocation of the watcher does while an agent is installed on a machine, which takes minutes."""

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prime_lambdas.settings import Settings
from prime_lambdas.watcher import WatcherOfStack
from prime_train.runs.run import DesiredState, Run
from tests import builders as b
from tests.fakes.prime import ApiKey, FakePrime, needs_sshd
from tests.lambdas.alone import SECRETS, Alone, alone
from tests.lambdas.deployed import Deployed
from tests.waiting import HANG_S, await_true

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="functions run on Linux"),
    # A function's connections end with its process.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

HARDWARE = {"gpus": ["A100"], "provider": "prime", "disk_gib": 50}
HEALTH = {"heartbeat_s": 1, "settle_s": 2, "first_heartbeat_s": 600}
INTERVAL_S = 0.3


class RunRecord:
    """A machine's SSH that stops in the middle of the first connection, until it is released."""

    def __init__(self, fake: FakePrime) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        fake.cut_ssh(after_bytes=500, then=self._hold)

    def _hold(self, port: int) -> None:
        self.begun.set()
        self.go.wait(HANG_S)


@pytest.fixture(name="lone")
def _lone(here: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return alone(here.cloud, tmp_path_factory.mktemp("watched"))


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime") as fake:
        fake.world.api_keys[SECRETS["PRIME_API_KEY"]] = ApiKey()
        yield fake


def watcher(lone: Alone, fake: FakePrime, folder: Path) -> WatcherOfStack:
    """Return a process of the function."""
    places = {
        "PRIME_API_BASE_URL": fake.url,
        "PRIME_TRAIN_PROVIDER": "prime",
        "PRIME_TRAIN_URL": "http://127.0.0.1:9",
    }
    env = {**lone.env("Watcher"), **places, "PRIME_TRAIN_POD_PYTHON": sys.executable}
    return WatcherOfStack(Settings.of(env), folder, interval_s=INTERVAL_S)


def agent_runs(fake: FakePrime) -> bool:
    (pod,) = fake.alive
    disk = fake.home_of(pod.pod_id)
    return disk is not None and (disk / ".prime-train" / "rented-1-e1" / "pid").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("other_process", [False, True], ids=["the same process", "another one"])
def test_other_runs_are_looked_at_while_an_agent_is_brought_and_one_that_is_cut_off_is_begun_again(
    lone: Alone, fake: FakePrime, tmp_path: Path, other_process: bool
) -> None:
    machine, left_s = RunRecord(fake), [900.0]
    spec = b.spec(hardware=HARDWARE, budget={"usd": 500.0}, health=HEALTH)
    lone.store.create(Run("rented-1", spec, created_s=int(time.time())))
    first = watcher(lone, fake, tmp_path / "first")
    with ThreadPoolExecutor(1) as calls:
        try:
            call = calls.submit(first.look, 0.0, lambda: left_s[0])
            assert machine.begun.wait(HANG_S)
            lone.store.create(
                Run("unwanted-1", spec, created_s=int(time.time()), desired=DesiredState.CANCEL)
            )

            def is_over() -> bool:
                record = lone.store.load("unwanted-1")
                return record is not None and record.run.is_over

            await_true("another run is looked at", is_over)
            assert not call.done()
            left_s[0] = 0.0  # its time is up
            assert call.result(20).errors == 0
            assert not agent_runs(fake)
            # What the first process has begun goes on standing still, as a frozen one's does.
            later = watcher(lone, fake, tmp_path / "later") if other_process else first
            await_true(
                "the agent is installed", lambda: bool(later.look(0.0, lambda: 900.0)) and agent_runs(fake)
            )
        finally:
            left_s[0] = 0.0
            machine.go.set()

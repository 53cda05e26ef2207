"""Many watchers on the same runs, and a control plane that dies anywhere in a launch: one pod each, no
orphan.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from prime_train.buckets.keys import pod_name
from prime_train.providers.local.pods import LocalPods
from prime_train.runs.run import DesiredState, Run, RunState
from prime_train.runs.verdict import PodStatus
from prime_train.stores.sqlite.store import SqliteStore
from tests.builders import spec
from tests.exhaustive import some_of
from tests.waiting import HANG_S, await_true

WATCHERS = 20
RUNS = 3
WATCHER = """
import pathlib, sys
from prime_train.buckets.open import open_bucket
from prime_train.providers.local.pods import LocalPods
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.watch.context import Context
from prime_train.watch.sweeps import sweep
home = pathlib.Path(sys.argv[1])
idle = [sys.executable, "-c", "import threading; threading.Event().wait()"]
world = Context(
    store=SqliteStore(home / "control.sqlite"), bucket=open_bucket((home / "bucket").as_uri(), make=True),
    pods=LocalPods(home / "pods", agent_command=idle), master=b"m" * 32, webhook_url="http://127.0.0.1:9",
)
print("ready", flush=True)
sys.stdin.readline()
for now_s in range(int(sys.argv[2]), int(sys.argv[2]) + 3):
    sweep(world, now_s)
print("done", flush=True)
"""


def watcher(home: Path, now_s: int, extra: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", extra + WATCHER, str(home), str(now_s)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path / "control.sqlite")
    for number in range(RUNS):
        config = spec(
            health={"settle_s": 1, "heartbeat_s": 1, "overdue_s": 2, "silence_s": 3}, hardware={"disk_gib": 1}
        )
        assert store.create(Run(run_id=f"many-{number}", spec=config, created_s=1000))
    return tmp_path


def living(home: Path) -> list[str]:
    return sorted(pod.name for pod in LocalPods(home / "pods").list() if pod.status is not PodStatus.GONE)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_twenty_watchers_at_once_rent_one_machine_for_each_run(home: Path) -> None:
    crowd = [watcher(home, 1000) for _ in range(WATCHERS)]
    try:
        for one in crowd:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        outcomes = [one.communicate("go\n", timeout=HANG_S) for one in crowd]
        assert [one.returncode for one in crowd] == [0] * WATCHERS, "\n".join(
            err for _, err in outcomes if err
        )
        runs = SqliteStore(home / "control.sqlite").list_runs()
        assert living(home) == sorted(pod_name(run.run_id, 1, run.attempts[0].identity) for run in runs)
        assert [run.state for run in runs] == [RunState.BOOTING] * RUNS
    finally:
        for pod in LocalPods(home / "pods").list():
            LocalPods(home / "pods").terminate(pod.pod_id)


DIE_AT = """
import os, signal, sys
SEEN = [0]
def hook(event, args, at=int({at})):
    if event in ("open", "os.rename", "os.mkdir", "subprocess.Popen", "socket.connect", "sqlite3.connect") and os.environ.get("DIE"):
        SEEN[0] += 1
        if SEEN[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""


@pytest.mark.slow
@pytest.mark.parametrize("at", some_of([1, 3, 5, 7, 9, 12, 15, 18, 22, 26], one_in=4))
def test_a_control_plane_killed_anywhere_in_a_launch_leaves_one_machine_for_each_run(
    home: Path, at: int
) -> None:
    dying = DIE_AT.format(at=at) + WATCHER.replace(
        "sys.stdin.readline()\n", "sys.stdin.readline()\nimport os; os.environ['DIE'] = '1'\n"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", dying, str(home), "1000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    first.communicate("go\n", timeout=HANG_S)
    assert first.returncode == -signal.SIGKILL, "it was not killed in its work"
    try:
        for now_s in (1003, 1006, 1025, 1045):
            again = watcher(home, now_s)
            _, errors = again.communicate("go\n", timeout=HANG_S)
            assert again.returncode == 0, errors
        names = living(home)
        assert [name.rsplit("-e", 1)[0] for name in names] == [
            f"pt-many-{number}" for number in range(RUNS)
        ], names
        stop_all(home, 1050)
        await_true("no machine is left", lambda: not living(home))
    finally:
        for pod in LocalPods(home / "pods").list():
            LocalPods(home / "pods").terminate(pod.pod_id)


def stop_all(home: Path, now_s: int) -> None:
    from prime_train.runs.change import requested

    store = SqliteStore(home / "control.sqlite")
    for run in store.list_runs():
        record = store.load(run.run_id)
        assert record is not None
        assert store.save(requested(record.run, DesiredState.CANCEL, now_s))
    last = watcher(home, now_s)
    _, errors = last.communicate("go\n", timeout=HANG_S)
    assert last.returncode == 0, errors

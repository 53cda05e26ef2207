"""Real processes whose clocks are wrong, and are set while they run: no run may be affected."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from prime_train.providers.local.pods import LocalPods
from prime_train.runs.ledger import totals
from prime_train.runs.run import CHECK_S_MAX, Run, RunState
from prime_train.spec.causes import Cause
from prime_train.stores.sqlite.store import SqliteStore
from tests.cli.shell import CONFIG, Shell
from tests.waiting import await_true

HERE = Path(__file__).parent
HOUR_S, DAY_S = 3600, 86_400
SKEWS_S = (-DAY_S, 285, HOUR_S, DAY_S)
ROUNDING_S = 5
"""Tolerance in seconds for an attempt's ledger: each time in it is a full second, that of the check at which
the event was observed.
"""
PACED = CONFIG.replace("--batch-size 8", "--batch-size 8 --step-seconds 0.25").replace(
    "hours: 2", "hours: 0.5"
)


class Clocks:
    """The wall clocks of processes, by name; each can be set at any time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def set(self, name: str, ahead_s: float) -> None:
        draft = self.folder / f"{name}.new"
        draft.write_text(str(ahead_s))
        draft.replace(self.folder / name)

    def env(self, name: str) -> dict[str, str]:
        return {"PYTHONPATH": str(HERE / "clocks"), "PT_CLOCK": str(self.folder / name)}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    here = tmp_path / "here"
    here.mkdir()
    return Shell(here)


@pytest.fixture
def clocks(tmp_path: Path) -> Clocks:
    folder = tmp_path / "clocks"
    folder.mkdir()
    return Clocks(folder)


def the_run(shell: Shell) -> Run:
    (run,) = SqliteStore(shell.home / "control.sqlite").list_runs()
    return run


def await_state(shell: Shell, state: RunState) -> None:
    await_true(f"the run is {state.value}", lambda: the_run(shell).state is state)


def await_end(shell: Shell) -> None:
    """Wait until the run is over and nothing of it is paid for."""
    await_true(
        "the run is over and settled",
        lambda: the_run(shell).is_over and all(a.ended_s for a in the_run(shell).attempts),
    )


@pytest.mark.slow
def test_no_watcher_with_a_wrong_clock_and_no_step_of_the_servers_changes_what_becomes_of_a_run(
    shell: Shell, clocks: Clocks
) -> None:
    began_s = time.monotonic()
    with shell.started("serve", "--port", "0", "--interval", "0.5", until="serving ", **clocks.env("server")):
        shell.ok("run", shell.config(PACED))
        await_state(shell, RunState.TRAINING)
        for ahead_s in SKEWS_S:
            clocks.set("watcher", ahead_s)
            done = shell.run("watch", "--once", **clocks.env("watcher"))
            assert done.returncode == 0, done.stderr
            clocks.set("server", -ahead_s)
            run, now_s = the_run(shell), SqliteStore(shell.home / "control.sqlite").now_s()
            assert run.attempt == 1
            assert run.next_check_s is None or run.next_check_s <= now_s + CHECK_S_MAX
        await_end(shell)
    run = the_run(shell)
    assert (run.state, run.attempt, run.why) == (RunState.SUCCEEDED, 1, "finished at step 20")
    took_s = time.monotonic() - began_s
    assert totals(run, 0).paid_s <= took_s + ROUNDING_S
    assert all(a.launched_s <= (a.fenced_s or 0) <= (a.ended_s or 0) for a in run.attempts)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_machine_that_is_gone_is_replaced_though_the_servers_clock_was_set_back(
    shell: Shell, clocks: Clocks
) -> None:
    with shell.started("serve", "--port", "0", "--interval", "0.5", until="serving ", **clocks.env("server")):
        shell.ok("run", shell.config(PACED))
        await_state(shell, RunState.TRAINING)
        clocks.set("server", -HOUR_S)
        attempt = the_run(shell).current_attempt
        assert attempt is not None
        assert attempt.pod_id is not None
        LocalPods(shell.home / "pods").preempt(attempt.pod_id)
        await_true("another machine has taken over", lambda: the_run(shell).attempt > 1)
        shell.ok("stop", the_run(shell).run_id, "--now")
        await_end(shell)
    assert next(a.cause for a in the_run(shell).attempts if a.cause is not None) in (
        Cause.PREEMPTED,
        Cause.MACHINE_LOST,
        Cause.BOOT_LOST,
    )


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_server_that_was_suspended_takes_nobodys_silence_for_death(shell: Shell) -> None:
    """The server is suspended for longer than a machine's silence limit. The agents' heartbeats could not be
    received meanwhile, and arrive again afterwards.
    """
    silent_s = 12
    config = CONFIG.replace("--batch-size 8", "--batch-size 8 --step-seconds 1").replace(
        "overdue_s: 10, silence_s: 20", f"overdue_s: 5, silence_s: {silent_s - 4}"
    )
    with shell.started("serve", "--port", "0", "--interval", "0.5", until="serving ") as server:
        shell.ok("run", shell.config(config))
        await_state(shell, RunState.TRAINING)
        os.kill(server.pid, signal.SIGSTOP)
        threading.Event().wait(silent_s)
        os.kill(server.pid, signal.SIGCONT)
        await_true("the run is over", lambda: the_run(shell).is_over)
        assert "this process was suspended" in shell.output
    assert (the_run(shell).state, the_run(shell).attempt) == (RunState.SUCCEEDED, 1)
    assert all(
        "silent" not in line.kind
        for line in SqliteStore(shell.home / "control.sqlite").history(the_run(shell).run_id)
    )


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("ahead_s", [-DAY_S, DAY_S])
def test_a_laptop_with_a_wrong_clock_works_with_a_control_plane_elsewhere(
    shell: Shell, clocks: Clocks, tmp_path: Path, ahead_s: int
) -> None:
    clocks.set("laptop", ahead_s)
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ", PRIME_TRAIN_PROVIDER="local"):
        reported = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        folder = tmp_path / "laptop"
        folder.mkdir()
        laptop = Shell(folder)
        before_s = SqliteStore(shell.home / "control.sqlite").now_s()
        done = laptop.run("run", laptop.config(), **reported, **clocks.env("laptop"))
        assert done.returncode == 0, done.stderr
        store = SqliteStore(shell.home / "control.sqlite")
        assert before_s - 1 <= the_run(shell).created_s <= store.now_s() + 1
        assert laptop.run("stop", the_run(shell).run_id, **reported, **clocks.env("laptop")).returncode == 0

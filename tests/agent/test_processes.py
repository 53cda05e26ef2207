"""Child processes, and the processes that they leave behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from prime_agent.processes import Child, LocalProcesses, marked
from prime_agent.trainer.logs import BoundedLog, Drain
from prime_train.text.shell import replacing_the_shell
from tests.waiting import HANG_S, await_true


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[LocalProcesses]:
    here = LocalProcesses(f"test-{tmp_path.name}-{os.getpid()}")
    yield here
    here.kill_all()


def started(
    processes: LocalProcesses, command: str, folder: Path, *, daemons: bool = False
) -> tuple[Child, Drain]:
    child = processes.start(command, cwd=folder, env=os.environ, name="child", daemons=daemons)
    return child, Drain(child.output, BoundedLog(folder / "log"), lambda lines: None, name="child")


def living(processes: LocalProcesses) -> list[psutil.Process]:
    return list(marked(f"{processes._owner}/"))


@pytest.mark.parametrize(
    ("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("no-such-program", 127)]
)
def test_the_exit_code_is_the_commands_own(
    command: str, code: int, processes: LocalProcesses, tmp_path: Path
) -> None:
    child, _ = started(processes, command, tmp_path)
    assert child.wait() == code


def test_a_folder_that_is_not_there_is_reported(processes: LocalProcesses, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        processes.start("true", cwd=tmp_path / "absent", env={}, name="child")


def test_kill_reaches_what_left_the_session(processes: LocalProcesses, tmp_path: Path) -> None:
    child, _ = started(processes, "setsid sleep 300 & setsid sleep 301 & sleep 302", tmp_path)
    await_true("all are there", lambda: sum(p.name() == "sleep" for p in living(processes)) == 3)
    child.kill()
    assert child.wait() == -9
    assert living(processes) == []


def test_kill_all_reaches_a_process_that_replaces_itself_all_the_time(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    # It ends by itself, should it ever be missed.
    successor = (
        "import os, time\nprint('up', flush=True)\nfor _ in range(10_000):\n    time.sleep(0.05)\n "
        "   os.fork() and os._exit(0)"
    )
    child, drain = started(
        processes, f'setsid {sys.executable} -c "{successor}" & sleep 300', tmp_path, daemons=True
    )
    await_true("it is up", lambda: "up" in drain.tail())
    processes.kill_all()
    assert child.wait() == -9
    assert living(processes) == []


def test_a_command_that_saves_on_sigterm_is_waited_for_behind_a_shell_that_died(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    saver = "trap 'sleep 1; echo saved > saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    child, drain = started(processes, f'true; sh -c "{saver}"; echo not reached', tmp_path)
    await_true("it is up", lambda: "up" in drain.tail())
    child.ask()
    child.wait()
    assert (tmp_path / "saved").exists()
    assert "not reached" not in drain.tail()


def test_services_that_a_set_up_starts_stay(processes: LocalProcesses, tmp_path: Path) -> None:
    child, _ = started(processes, "sleep 300 & true", tmp_path, daemons=True)
    assert child.wait() == 0
    await_true("only the service is left", lambda: [p.name() for p in living(processes)] == ["sleep"])


def test_what_is_left_when_its_parent_is_gone_is_ended_by_the_guard(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    """The guard's pipe is closed, as it would be if the agent were killed."""
    child, _ = started(processes, "sleep 300", tmp_path)
    guard = child._guard
    assert guard.stdin is not None
    guard.stdin.close()
    assert child.wait() == -15


def test_a_child_whose_guard_can_never_come_does_not_begin(processes: LocalProcesses, tmp_path: Path) -> None:
    """Between its start and that of its guard the child waits; if its parent dies then, it ends."""
    parent = f"""
import os, pathlib, prime_agent.processes as p
p._guard = lambda *_: os._exit(1)
p.LocalProcesses({processes._owner!r}).start('touch begun', cwd=pathlib.Path('.'), env=os.environ, name='child')
"""
    assert (
        subprocess.run([sys.executable, "-c", parent], cwd=tmp_path, check=False, timeout=HANG_S).returncode
        == 1
    )
    await_true("the child is gone", lambda: not living(processes))
    assert not (tmp_path / "begun").exists()


def test_output_is_read_to_its_end_however_much_there_is(processes: LocalProcesses, tmp_path: Path) -> None:
    count = 200_000
    child = processes.start(f"seq {count}", cwd=tmp_path, env=os.environ, name="child")
    lines: list[str] = []
    drain = Drain(child.output, BoundedLog(tmp_path / "log", bytes_max=100_000), lines.extend, name="child")
    child.wait()
    assert drain.join(HANG_S)
    assert lines == [str(number) for number in range(1, count + 1)]
    assert sum(path.stat().st_size for path in tmp_path.glob("log*")) <= 300_000


@pytest.mark.parametrize(
    "command", ["python train.py --x 1", " torchrun a.py > log", 'python a.py "$HOME/x"']
)
def test_one_plain_command_takes_the_shells_place(command: str) -> None:
    assert replacing_the_shell(command) == f"exec {command.strip()}"


@pytest.mark.parametrize(
    "command",
    [
        "cd a && python b",
        "A=1 python b",
        "a; b",
        "a | b",
        "(a)",
        "for x in 1; do y; done",
        "a\nb",
        "",
        ". ./env",
    ],
)
def test_anything_else_is_left_to_the_shell(command: str) -> None:
    assert replacing_the_shell(command) == command

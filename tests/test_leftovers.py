"""A test run fails if it leaves a process or a file behind, and says which."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.exhaustive import some_of
from tests.leftovers import ENDING_S, MARK
from tests.waiting import HANG_S

LEAVING = """
import os, subprocess, sys

def test_it(tmp_path):
    env = {env}
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], env=env, cwd={cwd}, start_new_session=True)
    open({pids!r}, "w").write(str(process.pid))
    {then}
"""
ENDED = "process.kill(); process.wait()"


def ran(
    folder: Path, *words: str, env: str = "None", cwd: str = "None", then: str = "pass"
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run a test that starts a process, and return how the run ended and the process's id."""
    pids = folder / "pid"
    (folder / "test_it.py").write_text(LEAVING.format(env=env, cwd=cwd, pids=str(pids), then=then))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.leftovers",
        "-p",
        "no:cacheprovider",
        *words,
        "test_it.py",
    ]
    outer = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name != MARK
    }
    # Its temporary files are its own: of several runs at once, one may rename the folder of another.
    (folder / "files").mkdir()
    own = {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        ENDING_S: "5",
        "PYTEST_DEBUG_TEMPROOT": str(folder / "files"),
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=outer | own,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return done, int(pids.read_text())


@pytest.mark.parametrize(
    "words",
    some_of([pytest.param((), id="in one process"), pytest.param(("-n", "2"), id="in workers")], one_in=2),
)
@pytest.mark.parametrize(
    ("env", "cwd"), [("None", "None"), ("{}", "tmp_path")], ids=["by its environment", "by its folder"]
)
def test_a_process_that_a_test_leaves_behind_fails_the_run_is_named_and_is_ended(
    words: tuple[str, ...], env: str, cwd: str, tmp_path: Path
) -> None:
    done, pid = ran(tmp_path, *words, env=env, cwd=cwd)
    assert done.returncode == 1, done.stdout
    assert f"left running: {pid} " in done.stdout
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_test_that_ends_what_it_starts_passes(tmp_path: Path) -> None:
    done, _ = ran(tmp_path, then=ENDED)
    assert done.returncode == 0, done.stdout

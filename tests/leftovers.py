"""What a test run must not leave behind: processes, and with them ports, and files in the repository.

A process belongs to the run if it has the run's mark in its environment, or was started in, or with a path
of, the folder of its temporary files. The mark is inherited by everything that a test starts, unless its
environment is made anew.
"""

import os
import secrets
import subprocess
import time
from collections.abc import Generator, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import psutil
import pytest

MARK = "PRIME_TRAIN_TESTS_RUN"
ENDING_S = "PRIME_TRAIN_TESTS_ENDING_S"
ENDING_S_MAX = float(os.environ.get(ENDING_S, "60"))
"""Seconds that processes of the last tests have to end. The guard of an agent that was killed ends its
trainer's group after 35.
"""
SHOWN_CHARS = 160
ROOT = Path(__file__).parents[1]

_files_before = pytest.StashKey[AbstractSet[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Mark everything that this run starts, and note which files of the repository differ before."""
    if hasattr(config, "workerinput"):
        return
    os.environ[MARK] = secrets.token_hex(8)
    config.stash[_files_before] = _changed_files()


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Fail the run if something is left of it, once all workers have ended."""
    result = yield
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None:
        return result
    lines = [f"left running: {line}" for line in _ended_by_force(os.environ[MARK], _folder(config))]
    lines += [
        f"left in the repository: {name}" for name in sorted(_changed_files() - config.stash[_files_before])
    ]
    for line in lines:
        reporter.write_line(line, red=True)
    if lines:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return result


def left_running(mark: str, folder: Path | None) -> list[psutil.Process]:
    """Return the processes of the run with that mark and folder of temporary files, other than this process
    and those above it.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in own and _belongs(process, mark, folder)
    ]


def _belongs(process: psutil.Process, mark: str, folder: Path | None) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.environ().get(MARK) == mark:
            return True
        if folder is None:
            return False
        return any(str(folder) in part for part in process.cmdline()) or Path(process.cwd()).is_relative_to(
            folder
        )
    except (psutil.Error, OSError):
        return False


def _ended_by_force(mark: str, folder: Path | None) -> Iterator[str]:
    """Kill what is left of the run, and yield a line about each process."""
    until_s = time.monotonic() + ENDING_S_MAX
    while (left := left_running(mark, folder)) and time.monotonic() < until_s:
        time.sleep(0.2)
    for process in left:
        try:
            line = f"{process.pid} {' '.join(process.cmdline())}"
            process.kill()
        except psutil.Error:
            continue
        yield line[:SHOWN_CHARS]


def _folder(config: pytest.Config) -> Path | None:
    """Return the folder of the run's temporary files; None if it has made none."""
    # pytest has no public name for it outside of fixtures
    factory = getattr(config, "_tmp_path_factory", None)
    return Path(factory.getbasetemp()) if factory is not None else None


def _changed_files() -> AbstractSet[str]:
    """Return the lines of `git status` that tell changed and new files; none outside of a repository."""
    done = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    return frozenset(done.stdout.splitlines()) if done.returncode == 0 else frozenset()

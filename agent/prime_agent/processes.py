"""Child processes that cannot outlive their use.

Each child has its own session, so that it can be signalled together with everything it started, and signals
to the agent's group do not reach it. Processes that left the session (as torchrun's workers do) are found by
a mark in their environment.

If the agent itself is killed, its children must not train on. So each child has a guard: a shell that holds
the reading end of a pipe whose other end only the agent has. When the agent ends, the guard wakes up and ends
the child's group. The child waits at a gate until its guard runs, so it never runs without one. The kernel's
parent-death signal would not help: it reaches only the first process, and is cleared on fork.
"""

import fcntl
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from prime_train.text.shell import replacing_the_shell

MARK = "PRIME_TRAIN_CHILD"
LEFTOVER_S_MAX = 5.0
"""Seconds for the processes that a child leaves behind to end by themselves."""

POLL_S = 0.1
KILL_ROUNDS_MAX = 20
PIPE_BYTES = 2**20
_SET_PIPE_BYTES = 1031

_WAIT_FOR_START = 'read -r _ || exit 125; exec /bin/sh -c "$1" </dev/null'
_GUARD = 'read -r _; kill -s TERM -- "-$1"; sleep 35; kill -s KILL -- "-$1"'

_log = logging.getLogger(__name__)


class Process(Protocol):
    """A child process with everything it started."""

    @property
    def pid(self) -> int: ...

    @property
    def output(self) -> int:
        """File descriptor of the read end of the pipe with its output (both streams); the reader closes
        it.
        """

    def wait(self) -> int:
        """Block until the child and everything it started have ended; return its exit code, negative for a
        signal. Call from one thread only.
        """

    def ask(self) -> None:
        """Send SIGTERM to all its processes: save and exit."""

    def kill(self) -> None:
        """Send SIGKILL to all its processes."""


class Processes(Protocol):
    def start(
        self, command: str, *, cwd: Path, env: Mapping[str, str], name: str, daemons: bool = False
    ) -> Process:
        """Run the command line by /bin/sh. With `daemons`, processes that it leaves behind keep running.
        Raises OSError if the process cannot be started.
        """

    def kill_all(self) -> None:
        """Send SIGKILL to every running process that was ever started here, until none is left."""


class LocalProcesses:
    """Processes on this machine. `owner` names the attempt and is part of the mark of every child."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def start(
        self, command: str, *, cwd: Path, env: Mapping[str, str], name: str, daemons: bool = False
    ) -> "Child":
        return Child(command, cwd=cwd, env=env, mark=f"{self._owner}/{name}", daemons=daemons)

    def kill_all(self) -> None:
        prefix = f"{self._owner}/"
        # One round may miss a process that a killed one has just started.
        for _ in range(KILL_ROUNDS_MAX):
            if not _kill_marked(prefix):
                return
            time.sleep(POLL_S)
        _log.error("processes of %s are still running after SIGKILL", prefix)


class Child:
    def __init__(self, command: str, *, cwd: Path, env: Mapping[str, str], mark: str, daemons: bool) -> None:
        self._mark = mark
        self._daemons = daemons
        self._stop_requested = False
        self._killed = threading.Event()
        self._gone = False
        self._popen = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT_FOR_START, "sh", replacing_the_shell(command)],
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._output = os.dup(self._popen.stdout.fileno())
        self._popen.stdout.close()
        # A larger pipe, for output written while the reading thread waits for the interpreter lock; without
        # it the pipe is only smaller.
        with suppress(OSError):
            fcntl.fcntl(self._output, _SET_PIPE_BYTES, PIPE_BYTES)
        try:
            self._guard = _guard(self._popen.pid, cwd)
        except OSError:
            self._popen.kill()
            raise
        with suppress(BrokenPipeError):
            self._popen.stdin.write(b"go\n")
            self._popen.stdin.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def output(self) -> int:
        return self._output

    def wait(self) -> int:
        code = self._popen.wait()
        if not self._daemons:
            # Wait for processes that the child left behind. After `ask`, the trainer may still be saving
            # although its shell has ended, so then only `kill` ends the wait.
            until_s = time.monotonic() + LEFTOVER_S_MAX
            while (
                not self._killed.is_set()
                and (self._stop_requested or time.monotonic() < until_s)
                and self._is_populated()
            ):
                self._killed.wait(POLL_S)
            self.kill()
        self._gone = True
        with self._guard:
            self._guard.kill()
        return code

    def ask(self) -> None:
        self._stop_requested = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill all processes, and return when none is left or after `KILL_ROUNDS_MAX` rounds."""
        self._killed.set()
        for _ in range(KILL_ROUNDS_MAX):
            self._signal(signal.SIGKILL)
            if self._gone or not (_kill_marked(self._mark) or self._is_populated()):
                return
            time.sleep(POLL_S)
        _log.error("processes of %s are still running after SIGKILL", self._mark)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process group, but never after its end, because its number may then belong to another
        group.
        """
        if self._gone:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _is_populated(self) -> bool:
        return _lives_in(self.pid) or any(True for _ in marked(self._mark))


def _lives_in(group: int) -> bool:
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess, psutil.AccessDenied):
            if os.getpgid(pid) == group and _lives(psutil.Process(pid)):
                return True
    return False


def marked(prefix: str) -> Iterator[psutil.Process]:
    """Yield the running processes whose mark equals `prefix`, or starts with it if it ends in /."""
    # The newest first: a process that replaces itself all the time would be gone by the time its old number
    # was reached.
    for pid in reversed(psutil.pids()):
        try:
            process = psutil.Process(pid)
            mark = process.environ().get(MARK, "") if process.pid != os.getpid() else ""
            if (
                mark
                and (mark == prefix or (prefix.endswith("/") and mark.startswith(prefix)))
                and _lives(process)
            ):
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _lives(process: psutil.Process) -> bool:
    return bool(process.status() != psutil.STATUS_ZOMBIE)


def _kill_marked(prefix: str) -> int:
    """Kill the marked processes, each with its process group, and return how many there were."""
    count, own = 0, os.getpgrp()
    for process in marked(prefix):
        count += 1
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError, PermissionError):
            # The kernel kills a group as one, with a member that is being started at this moment.
            group = os.getpgid(process.pid)
            if group != own:
                os.killpg(group, signal.SIGKILL)
            process.kill()
    return count


def _guard(pgid: int, cwd: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "guard", str(pgid)],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

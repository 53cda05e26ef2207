"""Child processes that cannot outlive their use.

A child has a session of its own, so that it can be signalled with everything it started, and nothing the agent's own group is sent reaches
it. What left that session (torchrun's workers do) is found by a mark in its environment.

When the agent itself is killed, nobody may train on: a guard, a shell that holds one end of a pipe whose other end only the agent has,
wakes up and ends the child's group. The child waits at a gate until the guard knows it, so there is no moment without one. The kernel's
parent-death signal would be no help here: it reaches the first process only, and dies with the first fork.
"""

import fcntl
import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

MARK = "PRIME_TRAIN_CHILD"
LEFTOVER_S_MAX = 5.0
"""What a child leaves running after its own end is given so long to end too."""

POLL_S = 0.1
KILL_ROUNDS_MAX = 20
PIPE_BYTES = 2**20
_SET_PIPE_BYTES = 1031

_GATE = 'read -r _ || exit 125; exec /bin/sh -c "$1" </dev/null'
_GUARD = 'read -r _; kill -s TERM -- "-$1"; sleep 35; kill -s KILL -- "-$1"'

_COMPOUND = re.compile(r"[;&|(){}`\n]")
_SHELL_WORD = re.compile(
    r"\s*(\w+\+?=|(\.|!|\[|alias|bg|break|case|cd|command|continue|eval|exec|exit|export|fg|for|function|getopts|hash|if|"
    r"jobs|local|read|readonly|return|set|shift|source|time|times|trap|type|ulimit|umask|unalias|unset|until|wait|while)(\s|$))"
)

_log = logging.getLogger(__name__)


class Process(Protocol):
    """A child with everything it started."""

    @property
    def pid(self) -> int: ...

    @property
    def output(self) -> int:
        """The end of the pipe it writes its output to, both streams; whoever reads it closes it."""

    def wait(self) -> int:
        """Blocks until it and all it started are gone; its exit code, negative for a signal. Called by one thread."""

    def ask(self) -> None:
        """SIGTERM to all of it: save and leave."""

    def kill(self) -> None:
        """SIGKILL to all of it."""


class Processes(Protocol):
    def start(self, command: str, *, cwd: Path, env: Mapping[str, str], name: str, daemons: bool = False) -> Process:
        """Runs the line by /bin/sh. `daemons`: what it leaves running is meant to stay. Raises OSError when there can be no such
        process."""

    def kill_all(self) -> None:
        """SIGKILL to everything ever started here that still lives."""


class LocalProcesses:
    """`owner` names the attempt; every child bears it as a mark."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def start(self, command: str, *, cwd: Path, env: Mapping[str, str], name: str, daemons: bool = False) -> "Child":
        return Child(command, cwd=cwd, env=env, mark=f"{self._owner}/{name}", daemons=daemons)

    def kill_all(self) -> None:
        _kill_marked(f"{self._owner}/")


class Child:
    def __init__(self, command: str, *, cwd: Path, env: Mapping[str, str], mark: str, daemons: bool) -> None:
        self._mark = mark
        self._daemons = daemons
        self._asked = False
        self._killed = threading.Event()
        self._gone = False
        self._popen = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, "sh", replacing_the_shell(command)],
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
        # Room for what is written while the reader waits for the interpreter; where it cannot be had, the pipe is only smaller.
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
            self._await_leftovers()
            self.kill()
        self._gone = True
        with self._guard:
            self._guard.kill()
        return code

    def ask(self) -> None:
        self._asked = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Returns when nothing of it is left, or after `KILL_ROUNDS_MAX` tries."""
        self._killed.set()
        for _ in range(KILL_ROUNDS_MAX):
            self._signal(signal.SIGKILL)
            if self._gone or not (_kill_marked(self._mark) or self._is_populated()):
                return
            time.sleep(POLL_S)
        _log.error("processes of %s are left after SIGKILL", self._mark)

    def _await_leftovers(self) -> None:
        """Asked to leave, the trainer may still be saving behind a shell that is gone already: then only `kill` ends the wait."""
        until_s = time.monotonic() + LEFTOVER_S_MAX
        while not self._killed.is_set() and (self._asked or time.monotonic() < until_s) and self._is_populated():
            self._killed.wait(POLL_S)

    def _signal(self, number: signal.Signals) -> None:
        """Never after the end: the number may name somebody else's group by then."""
        if self._gone:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _is_populated(self) -> bool:
        return _lives_in(self.pid) or any(True for _ in marked(self._mark))


def replacing_the_shell(command: str) -> str:
    """The same line, without a shell that waits beside it where it is one plain command. A shell dies of SIGTERM at once, and the exit
    code of what it waited for is lost with it."""
    plain = command.strip() and not _COMPOUND.search(command.strip()) and not _SHELL_WORD.match(command)
    return f"exec {command.strip()}" if plain else command


def _lives_in(group: int) -> bool:
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess, psutil.AccessDenied):
            if os.getpgid(pid) == group and _lives(psutil.Process(pid)):
                return True
    return False


def marked(prefix: str) -> Iterator[psutil.Process]:
    """Living processes whose mark is `prefix`, or begins with it where it ends in /."""
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK, "") if process.pid != os.getpid() else ""
            if mark and (mark == prefix or (prefix.endswith("/") and mark.startswith(prefix))) and _lives(process):
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _lives(process: psutil.Process) -> bool:
    return bool(process.status() != psutil.STATUS_ZOMBIE)


def _kill_marked(prefix: str) -> int:
    """Kills them, and says how many there were."""
    found = list(marked(prefix))
    for process in found:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()
    return len(found)


def _guard(pgid: int, cwd: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "guard", str(pgid)],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

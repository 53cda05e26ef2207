"""Starts the command as a process of its own, without the half second of CPU in which Python imports it: see
`fork_server`.
"""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Protocol

from tests.waiting import HANG_S

_AT_START = ("DYLD_", "LANG", "LC_", "LD_", "OPENBLAS_", "PYTHON", "TZ")
"""Starts of the names of variables that Python, or a library, reads once, when it starts."""


class Process(Protocol):
    """What the tests use of a `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def forks(env: Mapping[str, str]) -> bool:
    """Return whether a process with this environment can be forked: on Linux, with the variables that were
    read when the server started.
    """
    return sys.platform == "linux" and _at_start(env) == _at_start(os.environ)


def run(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str], errors: str
) -> "subprocess.CompletedProcess[str]":
    """Do what `subprocess.run` does with the command, with `capture_output` and for text."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = Forked(args, cwd=cwd, env=env, stdout=out, stderr=err)
        try:
            process.wait(HANG_S)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(args, process.wait(), _text(out, errors), _text(err, errors))


class Forked:
    """A process that runs the command, and reads nothing."""

    def __init__(
        self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        self.returncode: int | None = None
        self._socket, theirs = socket.socketpair()
        with closing(theirs), Path(os.devnull).open("rb") as nothing:
            fds = [stream.fileno() for stream in (nothing, stdout, stderr, theirs)]
            socket.send_fds(_server(), [b"."], fds)
        self._socket.sendall(json.dumps({"args": [*args], "env": {**env}, "cwd": str(cwd)}).encode() + b"\n")
        with self._socket.makefile("rb", buffering=0) as lines:
            self.pid = int(lines.readline())

    def poll(self) -> int | None:
        return self._code(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["prime-train"], timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _code(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self._socket.settimeout(timeout)
            try:
                line = self._socket.recv(100)
            except (BlockingIOError, TimeoutError):
                return None
            self.returncode = int(line)
            self._socket.close()
        return self.returncode


def _text(file: IO[bytes], errors: str) -> str:
    file.seek(0)
    return file.read().decode(errors=errors).replace("\r\n", "\n").replace("\r", "\n")


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}


@functools.cache
def _server() -> socket.socket:
    """Start the server of this process, which leaves with it."""
    ours, theirs = socket.socketpair()
    with closing(theirs):
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in ("HOME", "PATH") or name.startswith(_AT_START)
        }
        kept["OPENBLAS_NUM_THREADS"] = "1"  # or else numpy starts threads when it is imported
        command = [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(theirs.fileno())]
        server = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
    atexit.register(_leave, ours, server)
    return ours


def _leave(control: socket.socket, server: "subprocess.Popen[bytes]") -> None:
    control.close()
    server.wait(HANG_S)

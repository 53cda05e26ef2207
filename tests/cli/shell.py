"""The command as a user calls it: a process of its own with a home of its own."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from prime_train.environment import BACKGROUND
from tests.cli import forking
from tests.cli.forking import Process
from tests.waiting import HANG_S

PROGRAM = str(Path(sys.executable).parent / "prime-train")

CONFIG = """\
name: small
trainer:
  command: python -m prime_train.demo.train --steps 20 --save-every 10 --out out --progress progress.jsonl --batch-size 8
  steps: 20
  resume: --resume-step {step}
  code: {folder: TREE}
  progress: {file: progress.jsonl}
checkpoints: {folder: out/checkpoints, sentinel: COMPLETE}
hardware: {open_files_min: 256, disk_gib: 1}
health: {heartbeat_s: 1, overdue_s: 10, silence_s: 20, settle_s: 5}
budget: {usd: 5, hours: 2}
"""


def run(
    command: Sequence[str], here: Path, env: Mapping[str, str], *, errors: str = "strict"
) -> "subprocess.CompletedProcess[str]":
    """Call the command with nothing to read, and return its output and exit code. `errors`: what to do with
    output that is not UTF-8.
    """
    if _is_forked(command, env):
        return forking.run(command[1:], cwd=here, env=env, errors=errors)
    streams: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "capture_output": True,
        "text": True,
        "errors": errors,
    }
    return subprocess.run(command, cwd=here, env=env, timeout=HANG_S, check=False, **streams)


def start(command: Sequence[str], here: Path, env: Mapping[str, str], log: IO[bytes]) -> Process:
    """Start the command with nothing to read."""
    if _is_forked(command, env):
        return forking.Forked(command[1:], cwd=here, env=env, stdout=log, stderr=log)
    return subprocess.Popen(command, cwd=here, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def _is_forked(command: Sequence[str], env: Mapping[str, str]) -> bool:
    return command[0] == PROGRAM and forking.forks(env)


@dataclass(frozen=True)
class Shell:
    """A shell for calls of the command. `here` is the working directory; the home is beside it."""

    here: Path
    program: tuple[str, ...] = (PROGRAM,)

    @property
    def home(self) -> Path:
        return self.here / "home"

    @property
    def env(self) -> dict[str, str]:
        # A person's machine, also where CI runs the tests: a job of CI judges configs differently.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PRIME_") and name != "CI"
        }
        path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
        # Without a control plane in the background, which outlives the command: tests/cli/control_plane/test_background.py
        own = {"PRIME_TRAIN_HOME": str(self.home), BACKGROUND: "no", "PATH": path, "COLUMNS": "200"}
        return kept | own

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run([*self.program, *args], self.here, self.env | env)

    @property
    def output(self) -> str:
        """Return what the started process has printed so far."""
        return (self.here / "said.log").read_text()

    @contextmanager
    def started(self, *args: str, until: str, **env: str) -> Iterator[Process]:
        """Start a process that keeps running, and return it once it has printed `until`."""
        with (self.here / "said.log").open("wb") as log:
            process = start([*self.program, *args], self.here, self.env | env, log)
        try:
            end_s, pause = time.monotonic() + HANG_S, threading.Event()
            while until not in self.output:
                assert process.poll() is None, f"{args} left with {process.returncode}: {self.output}"
                assert time.monotonic() < end_s, f"{args} never said {until!r}: {self.output}"
                pause.wait(0.05)
            yield process
        finally:
            process.terminate()
            process.wait(HANG_S)

    def ok(self, *args: str) -> str:
        """Return the output of a call that must succeed."""
        done = self.run(*args)
        assert done.returncode == 0, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def config(self, text: str = CONFIG) -> str:
        """Write a valid config with a small working tree, and return its path."""
        self.write("tree/train.py", "print('hello')\n")
        return str(self.write("small.yaml", text.replace("TREE", str(self.here / "tree"))))

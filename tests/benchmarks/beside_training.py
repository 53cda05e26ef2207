"""Uploading beside a trainer that uses every core: the cost for the trainer, at the priority and with the
limits of a release.

The trainer multiplies matrices on every core, and each step waits for the slowest. It runs all the time. So
do the agent's uploads, over TLS, except in windows of time in which agent and server are stopped: so windows
with and without uploads follow each other directly, and can be short and many. In reality the server would
run elsewhere; here its work, at the lowest priority, is included. The noise is the variation of steps without
any change.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import track
from rich.table import Table

from prime_agent.checkpoints.thread_priority import NICE
from tests.benchmarks.beside_agent import FIRST, checkpoints
from tests.benchmarks.transfer.transfer_disk import MIB, Load, fill, room_for, server_on
from tests.benchmarks.transfer.transfer_tools import ROOT
from tests.buckets import keys_for, url_of
from tests.fakes.s3_servers import S3Server, minio_program

LOAD = Load(4, 64 * MIB)
ROOM = 6 * 2**30
WINDOW_S = 3.5
PAIRS = 12
SLOWER_PCT_MAX = 5
SERVER_NICE = 19
START_S = 6
ANSWER_S_MAX = 120

# 60 ms a step on two cores, which is short beside what a scheduler shares out, and long beside what it costs
# to start the threads.
TRAINER = """\
import time, numpy
a = numpy.ones((1500, 1500), numpy.float32)
while True:
    began = time.monotonic()
    a @ a
    print(began, time.monotonic(), flush=True)
"""


@dataclass(frozen=True)
class Window:
    """Some seconds of training, with or without uploads, and the bytes that the server received in them."""

    began_s: float
    ended_s: float
    beside: bool
    received: int

    def median_s(self, steps: list[tuple[float, float]]) -> float:
        return statistics.median(
            end_s - began_s for began_s, end_s in steps if self.began_s <= began_s and end_s <= self.ended_s
        )


def main(quick: bool = False) -> None:
    console = Console()
    if minio_program() is None or sys.platform != "linux":
        console.print("skipped: it needs Linux, and minio on PATH, in $MINIO or in ~/go/bin")
        return
    pairs, window_s = (2, 3.0) if quick else (PAIRS, WINDOW_S)
    progress = Console(stderr=True)
    progress.print(
        f"{pairs} pairs of windows of {window_s:g} s: this takes about {2 * pairs * window_s + START_S:.0f} s"
    )
    with room_for(ROOM) as disk, server_on(disk) as server:
        fill(checkpoints(disk) / FIRST, LOAD)
        _stand_behind(server.pid)
        windows, steps = _watch(disk, server, [window_s] * pairs, progress)
    _say(console, windows, steps)


def _watch(
    disk: Path, server: S3Server, pairs: list[float], progress: Console
) -> tuple[list[Window], list[tuple[float, float]]]:
    stated, serving = disk / "steps", psutil.Process(server.pid)
    windows = []
    with _agent(disk, server) as agent, _trainer(stated):
        # Drawn once a second, so that it costs the trainer nothing.
        for window_s in track(
            pairs, "pairs of windows", console=progress, transient=True, refresh_per_second=1
        ):
            with _stopped(agent.pid, server.pid):
                windows.append(_window(window_s, serving, beside=False))
            windows.append(_window(window_s, serving, beside=True))
        if agent.poll() is not None:
            raise RuntimeError("the agent ended before the last window did")
    return windows, [
        (float(began), float(end))
        for began, end in (line.split() for line in stated.read_text().splitlines()[:-1])
    ]


@contextmanager
def _stopped(*pids: int) -> Iterator[None]:
    """Stop these processes during the block. The server is stopped as well, because it still reads what the
    agent sent before.
    """
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _window(seconds: float, server: psutil.Process, *, beside: bool) -> Window:
    began_s, before = time.monotonic(), _received(server)
    threading.Event().wait(seconds)
    return Window(began_s, time.monotonic(), beside, _received(server) - before)


def _received(server: psutil.Process) -> int:
    """Return the bytes that the server has read so far, nearly all of them from its connections."""
    return server.io_counters().read_chars


@contextmanager
def _trainer(stated: Path) -> Iterator[None]:
    env = dict(os.environ) | {
        name: str(os.cpu_count()) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    with (
        stated.open("w") as output,
        _ended(subprocess.Popen([sys.executable, "-c", TRAINER], env=env, stdout=output)),
    ):
        yield


@contextmanager
def _agent(disk: Path, server: S3Server) -> Iterator[subprocess.Popen[str]]:
    """Start an agent. It has uploaded one checkpoint, so that all its threads exist, and continues."""
    env = {**os.environ, **keys_for(server), "BENCH_BUCKET": url_of(server)}
    command = [sys.executable, "-m", "tests.benchmarks.beside_agent", str(disk)]
    agent = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    with _ended(agent):
        _answer(agent)
        yield agent


@contextmanager
def _ended(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> Iterator[None]:
    with process:
        try:
            yield
        finally:
            process.kill()


def _answer(agent: subprocess.Popen[str]) -> str:
    """Return the next line that the agent prints. If none comes, kill the agent and raise an error."""
    assert agent.stdout is not None
    late = threading.Timer(ANSWER_S_MAX, agent.send_signal, (signal.SIGKILL,))
    late.start()
    try:
        line = agent.stdout.readline()
    finally:
        late.cancel()
    if not line:
        raise RuntimeError(f"the agent said nothing within {ANSWER_S_MAX} s, or ended")
    return line


def _stand_behind(pid: int) -> None:
    """Lower the priority of a process and all of its threads as far as possible without stopping it."""
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        os.setpriority(os.PRIO_PROCESS, int(task.name), SERVER_NICE)


def _say(console: Console, windows: list[Window], steps: list[tuple[float, float]]) -> None:
    table = Table("uploads", "step ms (median of medians)", "lowest", "highest", "MB/s received")
    medians = {
        beside: [w.median_s(steps) * 1000 for w in windows if w.beside == beside] for beside in (False, True)
    }
    for beside, name in ((False, "none"), (True, f"nice {NICE}")):
        mine = [w for w in windows if w.beside == beside]
        rate = sum(w.received for w in mine) / 1e6 / sum(w.ended_s - w.began_s for w in mine)
        made = medians[beside]
        table.add_row(
            name, f"{statistics.median(made):.1f}", f"{min(made):.1f}", f"{max(made):.1f}", f"{rate:.1f}"
        )
    console.print(table)
    # Each with the window just before it: what else the machine does changes slowly.
    slower_pct = 100 * (
        statistics.median(beside / alone for alone, beside in zip(medians[False], medians[True], strict=True))
        - 1
    )
    drift_pct = 100 * (statistics.median(max(pair) / min(pair) for pair in pairwise(medians[False])) - 1)
    console.print(
        f"slower by {slower_pct:.1f} % (at most {SLOWER_PCT_MAX} is wanted), the median of "
        f"{len(medians[True])} pairs of windows"
    )
    console.print(
        f"noise: two windows without uploads that follow each other differ by {drift_pct:.1f} %, the median "
        "again"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    main(**vars(parser.parse_args()))

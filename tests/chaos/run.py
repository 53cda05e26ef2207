"""Plays histories on real processes and reports which of them broke a promise.

python -m tests.chaos --seed N
python -m tests.chaos --seeds A:B [--jobs 4] [--minutes 60]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path

from tests.chaos.faults import plan
from tests.chaos.history import play
from tests.e2e.plane import STEPS
from tests.waiting import HANG_S


def reference(folder: Path) -> str:
    """Return the hash of the weights after a run of the same command without faults and without
    prime-train.
    """
    options = ["--steps", str(STEPS), "--save-every", "10", "--batch-size", "16", "--out", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "prime_train.demo.train", *options],
        check=True,
        capture_output=True,
        timeout=HANG_S,
    )
    return str(json.loads((folder / "final.json").read_text())["sha256"])


def played(seed: int, weights: str, parent: Path) -> tuple[int, list[str]]:
    folder = parent / f"seed-{seed}"
    folder.mkdir(exist_ok=True)
    try:
        broken = play(plan(seed), folder, weights)
    except (
        Exception
    ):  # of whatever kind: the other histories are played all the same, and this one counts as broken
        broken = [f"it could not be played to its end:\n{traceback.format_exc()}"]
    shutil.rmtree(folder, ignore_errors=True)
    return seed, broken


def _all(seeds: Sequence[int], jobs: int, minutes: float, parent: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each history as it ends; none is started after this many minutes."""
    weights, end_s = reference(parent / "untroubled"), time.monotonic() + minutes * 60
    work = ((seed, weights, parent) for seed in seeds if time.monotonic() < end_s)
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(played, *job) for job in islice(work, jobs)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(played, *job) for job in islice(work, len(done))}
            yield from (one.result() for one in done)


def main(arguments: list[str] | None = None) -> int:
    """Return exit code 0 if every promise held."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", default="0:20", help="A:B, B not included")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0, help="no history is begun later")
    options = parser.parse_args(arguments)
    first, last = (
        (options.seed, options.seed + 1) if options.seed is not None else map(int, options.seeds.split(":"))
    )
    failed, played, faults, began_s = 0, 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as parent:
        for seed, broken in _all(range(first, last), options.jobs, options.minutes, Path(parent)):
            played, faults = played + 1, faults + len(plan(seed).faults)
            print(
                f"{plan(seed)}\n  " + ("held" if not broken else "BROKEN: " + "\n".join(broken)), flush=True
            )
            failed += bool(broken)
    print(
        f"{played} histories, {faults} faults, {failed} broke a promise, {time.monotonic() - began_s:.0f} s"
    )
    return 1 if failed else 0

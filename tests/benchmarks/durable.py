"""Seconds from a complete checkpoint to its manifest in the bucket, over networks of known speed, with
`compress` off and auto.

A new agent uploads two checkpoints: the first as after a start, the second as at any later time. Of the first
it sends about 100 MB uncompressed to measure the network. The commit is one more small request. Agent and
server share the cores of this machine, which may be the limit.
"""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.benchmarks.compression import Data, train  # First: it lets numpy have one thread.

import numpy as np  # isort: skip
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.benchmarks.durable_agent import WAITING, Upload
from tests.benchmarks.transfer.transfer_disk import MIB, room_for, server_on
from tests.benchmarks.transfer.transfer_tools import ROOT
from tests.benchmarks.wire import NoWire, at_the_end_of
from tests.buckets import keys_for, url_of
from tests.fakes.s3_servers import Place, minio_program

GBITS = (1, 5, 10)
KINDS = ("off", "auto")
CHECKPOINTS = ("first", "next")
ROUNDS, COPIES = 3, 44
"""Number of copies of the trained tensors in one checkpoint."""
ROW = 256
"""Number of values that stay together when a copy is made, so that no two chunks are equal but their
statistics are.
"""
WIDTHS = {"BF16": 2, "F32": 4}
BYTES_A_COPY = 1280 * 1024 * (2 + 4 + 4)
FULL_SHARE = 0.85
UPLOAD_S_MAX = 900

Shots = dict[tuple[str, str], list[Upload]]
"""Uploads by `compress` and by the position of the checkpoint."""


def main(quick: bool = False) -> None:
    console = Console()
    if minio_program() is None:
        console.print("skipped: there is no minio on PATH, in $MINIO or in ~/go/bin")
        return
    rounds, copies = (1, 16) if quick else (ROUNDS, COPIES)
    size = copies * BYTES_A_COPY
    table = Table(
        "Gbit/s",
        "checkpoint",
        "off s",
        "auto s",
        "off/auto",
        "auto took, %",
        "limit of off",
        "of auto",
        padding=(0, 0),
    )
    spreads = []
    try:
        with room_for(2 * len(CHECKPOINTS) * size) as room:
            make(room / "made", copies)
            for gbit in track(GBITS, "uploading", console=Console(stderr=True), transient=True):
                with at_the_end_of(gbit) as place:
                    shots = measure(room, place, rounds)
                for which in CHECKPOINTS:
                    table.add_row(f"{gbit:g}", which, *_row(gbit, shots["off", which], shots["auto", which]))
                spreads += [_spread_pct(made) for made in shots.values()]
    except NoWire as why:
        console.print(f"skipped: {why}")
        return
    console.print(table)
    console.print(
        f"{size / MIB:.0f} MiB of bf16 weights and both fp32 moments of Adam; medians of {rounds}, off and "
        "auto in turn"
    )
    if rounds > 1:
        console.print(
            f"noise: uploads of one kind differ by {statistics.median(spreads):.0f} % (the median), by "
            f"{max(spreads):.0f} % at most"
        )
    console.print(
        f"limit: the wire, or else the cores of this machine, where {100 * FULL_SHARE:.0f} % of it was used"
    )


def measure(room: Path, place: Place, rounds: int) -> Shots:
    shots: Shots = defaultdict(list)
    for turn in range(rounds):
        for compress in KINDS if turn % 2 == 0 else reversed(KINDS):
            for which, upload in zip(CHECKPOINTS, _uploads(room, place, compress), strict=True):
                shots[compress, which].append(upload)
    return shots


def _uploads(room: Path, place: Place, compress: str) -> list[Upload]:
    """Yield the uploads of a new agent to a new server."""
    with tempfile.TemporaryDirectory(dir=room) as name, server_on(Path(name), place) as server:
        disk = Path(name) / "disk"
        shutil.copytree(room / "made", disk / WAITING, copy_function=os.link)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": name,
            "PYTHONPATH": str(ROOT),
            **keys_for(server),
            "BENCH_BUCKET": url_of(server),
        }
        command = [sys.executable, "-m", "tests.benchmarks.durable_agent", str(disk), compress]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=UPLOAD_S_MAX, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(f"the agent ended with {done.returncode}: {done.stderr[-2000:]}")
    return [Upload(**json.loads(line)) for line in done.stdout.splitlines()]


# ------------------------------------------------------------------------------------------------------------
# checkpoints


def make(folder: Path, copies: int) -> None:
    """Create two checkpoints that share no chunk, from the same short training."""
    trained, _ = train(hidden=1024, steps=60)
    of = {data.name: data for data in trained}
    rng = np.random.default_rng(0)
    for step, _ in enumerate(CHECKPOINTS, start=1):
        path = folder / f"step_{step}"
        path.mkdir(parents=True)
        _save(path / "model.safetensors", {"w": of["weights bf16"]}, copies, rng)
        moments = {"exp_avg": of["Adam exp_avg fp32"], "exp_avg_sq": of["Adam exp_avg_sq fp32"]}
        _save(path / "optimizer.safetensors", moments, copies, rng)
        (path / "COMPLETE").write_bytes(b"1\n")


def _save(path: Path, tensors: Mapping[str, Data], copies: int, rng: np.random.Generator) -> None:
    header, at = {}, 0
    for name, data in tensors.items():
        end = at + copies * len(data.raw)
        header[name] = {
            "dtype": data.dtype,
            "shape": [(end - at) // WIDTHS[data.dtype]],
            "data_offsets": [at, end],
        }
        at = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for data in tensors.values():
            file.writelines(_shuffled(data, copies, rng))


def _shuffled(data: Data, copies: int, rng: np.random.Generator) -> Iterator[bytes]:
    rows = np.frombuffer(data.raw, np.uint8).reshape(-1, ROW * WIDTHS[data.dtype])
    for _ in range(copies):
        yield rows[rng.permutation(len(rows))].tobytes()


# ------------------------------------------------------------------------------------------------------------
# what is said


def _row(gbit: float, off: list[Upload], auto: list[Upload]) -> list[str]:
    off_s, auto_s = (statistics.median(one.took_s for one in made) for made in (off, auto))
    codecs: dict[str, float] = defaultdict(float)
    for one in auto:
        for codec, size in one.codecs.items():
            codecs[codec] += size / one.raw / len(auto)
    took = ", ".join(
        f"{codec} {100 * share:.0f}" for codec, share in sorted(codecs.items(), key=lambda pair: -pair[1])
    )
    return [
        f"{off_s:.2f}",
        f"{auto_s:.2f}",
        f"{off_s / auto_s:.2f}",
        took,
        _limit(gbit, off),
        _limit(gbit, auto),
    ]


def _spread_pct(made: list[Upload]) -> float:
    times = [one.took_s for one in made]
    return 100 * (max(times) / min(times) - 1)


def _limit(gbit: float, made: list[Upload]) -> str:
    wire = statistics.median(one.stored * 8 / 1e9 / one.took_s / gbit for one in made)
    cores = statistics.median(one.busy for one in made)
    if wire >= FULL_SHARE:
        return f"wire, {100 * wire:.0f} %"
    return f"cores, {100 * cores:.0f} %" if cores >= FULL_SHARE else "neither"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    main(**vars(parser.parse_args()))

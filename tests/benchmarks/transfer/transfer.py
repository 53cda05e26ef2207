"""Transfers: a checkpoint up and down, ours beside s5cmd, aws-cli, boto3 and rclone, over TLS, on one machine
with a real server.

Each is a process of its own, whose start counts. Ours hashes what it sends, looks it up in the bucket's list,
and checks every byte that it fetches; the others do not. The server shares the cores with its client, so
compare the tools with each other, not with a wire. With `--gbit` the server is at the far end of a wire of
that speed, and the table says which share of it was filled with content.

What the profile of our way down says (`--profile`): waiting in obstore itself cost a third of all CPU, for
the thread that waited was woken for every packet; see `buckets/event_loop.py`. What is left is spread thin:
BLAKE3 (a tenth), putting packets together and AES (a twentieth each), the start of Python; and the kernel's
copies out of the socket and into the file, and new pages for both.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from tests.benchmarks.transfer.transfer_disk import MIB, Load, fill, room_for, server_on
from tests.benchmarks.transfer.transfer_tools import OURS, ROOT, TOOLS, Tool, install_peers, present, source
from tests.benchmarks.wire import NoWire, at_the_end_of, speed
from tests.fakes.s3_servers import LOOPBACK, Place, minio_program

ROUNDS = 3
TRANSFER_S_MAX = 1800
ROOM_FACTOR = 2
"""Factor of the needed space on the size of the files: the server stores them, and they are downloaded
again.
"""
PROFILE_LINES = 14

# Between us and the tool, as small as can be: a process inherits the peak memory of the one that started it.
METER = """\
import json, resource, subprocess, sys, time
began = time.monotonic()
code = subprocess.call(sys.argv[1:], stdout=sys.stderr)
took_s = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([took_s, used.ru_utime + used.ru_stime, used.ru_maxrss]))
sys.exit(code)
"""
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Shot:
    """One transfer. `cpu_s` is that of all of the tool's processes, `mib` the peak memory of the largest."""

    gb_per_s: float
    cpu_s_per_gb: float
    mib: float


LOADS = (Load(8, 512 * MIB), Load(2000, MIB))
WIRED = (Load(4, 256 * MIB), Load(512, MIB))
QUICK = (Load(4, 64 * MIB), Load(256, MIB))


def main(quick: bool = False, profile: bool = False, gbit: float | None = None) -> None:
    console = Console()
    if minio_program() is None:
        console.print("skipped: there is no minio on PATH, in $MINIO or in ~/go/bin")
        return
    install_peers()
    console.print(*(f"{name} is left out: there is none on PATH" for name in TOOLS if name not in present()))
    loads, rounds = (QUICK, 1) if quick else (WIRED if gbit else LOADS, ROUNDS)
    try:
        with at_the_end_of(gbit) as place:
            for load in loads:
                # What is sent lies on the disk, of which the system keeps in memory what fits.
                with tempfile.TemporaryDirectory() as name:
                    fill(source(Path(name)), load)
                    if profile:
                        print(_profile(Path(name), load, place))
                    else:
                        console.print(_table(load, measure(Path(name), load, rounds, place), gbit))
    except NoWire as why:
        console.print(f"skipped: {why}")
        return
    if not profile:
        console.print(
            f"medians of {rounds} in shuffled order; every folder that came back was compared with what was "
            "sent"
        )
    if gbit:
        console.print("wire %: content by the speed of the wire; of a full one about 5 % are headers")


def measure(
    disk: Path, load: Load, rounds: int, place: Place = LOOPBACK
) -> dict[tuple[str, str], list[Shot]]:
    """Return measurements by tool and direction, with the server at that place."""
    shots = defaultdict(list)
    for turn in range(rounds):
        for name in random.Random(turn).sample(present(), len(present())):
            for way, shot in _both_ways(name, disk, load, place).items():
                shots[name, way].append(shot)
    return shots


def _both_ways(name: str, disk: Path, load: Load, place: Place) -> dict[str, Shot]:
    """Measure both directions with a new server, because an old one keeps deleted data for minutes."""
    sent = source(disk)
    with room_for(ROOM_FACTOR * load.total) as room, server_on(room, place) as server:
        tool, into = TOOLS[name](server, room), room / "into"
        shots = {
            "up": _shot(tool, tool.up(disk), load.total),
            "down": _shot(tool, tool.down(into), load.total),
        }
        _compare(sent, into / sent.name if name == OURS else into)
    return shots


def _shot(tool: Tool, command: list[str], total: int) -> Shot:
    meter = [sys.executable, "-I", "-S", "-c", METER, *command]
    done = subprocess.run(
        meter,
        cwd=ROOT,
        env=dict(tool.env),
        capture_output=True,
        text=True,
        timeout=TRANSFER_S_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{tool.name} failed: {done.stderr[-2000:]}")
    took_s, cpu_s, peak = json.loads(done.stdout)
    return Shot(total / 1e9 / took_s, cpu_s / (total / 1e9), peak * MAXRSS_UNIT / MIB)


def _compare(sent: Path, came: Path) -> None:
    # Not filecmp, which believes a file's size and time.
    names = sorted(path.name for path in sent.iterdir())
    if names != sorted(path.name for path in came.iterdir()):
        raise RuntimeError(f"{came} has other files than were sent")
    for name in names:
        with (sent / name).open("rb") as one, (came / name).open("rb") as other:
            while data := one.read(MIB):
                if data != other.read(MIB):
                    raise RuntimeError(f"{name} came back with another content")


# ------------------------------------------------------------------------------------------------------------
# what is said


def _table(load: Load, shots: dict[tuple[str, str], list[Shot]], gbit: float | None) -> Table:
    numbers = ("GB/s", "wire %", "CPU s/GB", "MiB") if gbit else ("GB/s", "CPU s/GB", "MiB")
    title = f"{load} over a wire of {gbit:g} Gbit/s each way" if gbit else f"{load} over loopback"
    table = Table(
        Column("tool", no_wrap=True),
        *(f"{way} {what}" for way in ("up", "down") for what in numbers),
        title=title,
        padding=(0, 0),
    )
    for name in dict.fromkeys(name for name, _ in shots):
        table.add_row(name, *(cell for way in ("up", "down") for cell in _cells(shots[name, way], gbit)))
    return table


def _cells(made: list[Shot], gbit: float | None) -> list[str]:
    gb_per_s = statistics.median(shot.gb_per_s for shot in made)
    share = [f"{100 * gb_per_s * 8 / gbit:.0f}"] if gbit else []
    cpu_s_per_gb, mib = (
        statistics.median(values)
        for values in zip(*((shot.cpu_s_per_gb, shot.mib) for shot in made), strict=True)
    )
    return [f"{gb_per_s:.2f}", *share, f"{cpu_s_per_gb:.2f}", f"{mib:.0f}"]


def _profile(disk: Path, load: Load, place: Place) -> str:
    """Show by perf where CPU time goes during a restore."""
    if shutil.which("perf") is None:
        return "there is no perf on PATH"
    data = disk / "perf.data"
    with room_for(ROOM_FACTOR * load.total) as room, server_on(room, place) as server:
        ours = TOOLS[OURS](server, room)
        _shot(ours, ours.up(disk), load.total)
        _shot(
            ours,
            ["perf", "record", "--quiet", "-F", "499", "-o", str(data), *ours.down(room / "into")],
            load.total,
        )
    report = ["perf", "report", "--stdio", "--no-children", "--sort", "dso,symbol", "-i", str(data)]
    stated = subprocess.run(report, capture_output=True, text=True, timeout=TRANSFER_S_MAX, check=True).stdout
    return "\n".join(
        [
            " ".join(line.split()).removesuffix(" - -")
            for line in stated.splitlines()
            if line.strip() and not line.startswith("#")
        ][:PROFILE_LINES]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--gbit",
        type=speed,
        help="over a wire of that speed (above 0, 1000 at most) instead of loopback; needs Linux and root",
    )
    main(**vars(parser.parse_args()))

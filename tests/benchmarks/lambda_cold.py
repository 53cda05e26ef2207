"""The Lambdas: what a cold start imports, from the code as it is deployed to AWS; its size; and the cost of a
month.

CPU time is measured, because the machine may do other things too; in rounds, so that a busy moment affects
all rows alike. Prices: on demand, us-east-1, arm64, free tiers deducted.
"""

import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from rich.console import Console
from rich.table import Table

from prime_train.aws.code import own, pins
from prime_train.aws.package import MACHINES, PYTHONS, Target, package

STARTS = "import prime_lambdas.webhook"
IMPORTS: dict[str, tuple[str, int | None]] = {
    "the webhook, to its first request": (STARTS, 600),
    "  and what commits, operators and people need": (
        f"{STARTS}, prime_lambdas.homes, prime_train.pages.dashboard, prime_train.buckets.location",
        None,
    ),
    "the watcher": ("import prime_lambdas.watcher", None),
    "peer: pydantic": ("import pydantic", None),
    "peer: FastAPI and Mangum": ("import fastapi, mangum", None),
    "peer: boto3 with a client of DynamoDB": (
        "import boto3; boto3.client('dynamodb', region_name='us-east-1')",
        None,
    ),
}
"""The imports that are run in a fresh process, and the limit of their milliseconds."""
STARTING = {
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "PRIME_TRAIN_STORE": "dynamodb://tab",
    "PRIME_TRAIN_BUCKET": "s3://training",
    "PRIME_TRAIN_SECRET": "one",
}
"""The environment of a function that starts."""
SCRIPT = """
import os, sys, time
os.environ.update({starting!r})
sys.path[:] = [p for p in sys.path if "site-packages" not in p]
sys.path.insert(0, {folder!r})
wall, cpu = time.perf_counter(), time.process_time()
{what}
print(time.process_time() - cpu, time.perf_counter() - wall, len(sys.modules))
"""
MONTH_S = 30 * 86_400
HEARTBEAT_S = 30
SWEEP_S = 15
HEARTBEAT_S_BILLED = 0.010
"""Billed seconds of a warm heartbeat: 1.5 ms of CPU on the third of a core that it has, and the wait for
DynamoDB. Not measured on AWS.
"""
WEBHOOK_GIB, WATCHER_GIB = 512 / 1024, 320 / 1024
LEASE_KIB = 0.8
LOOKS_A_SWEEP = 2
"""Number of queries of a sweep: for runs that are due, and for open leases."""
USD_WRITE, USD_READ, USD_CALL, USD_GIB_S = 0.625e-6, 0.125e-6, 0.2e-6, 1.33334e-5
FREE_CALLS, FREE_GIB_S = 1e6, 4e5
USD_SECRET = 0.40


@dataclass(frozen=True)
class Month:
    """Dollars per month, by purpose."""

    heartbeats: float
    sweeps: float
    functions: float

    @property
    def total(self) -> float:
        return self.heartbeats + self.sweeps + self.functions + USD_SECRET


def month(runs: int) -> Month:
    """Return the cost of a month with this many runs that train all the time."""
    heartbeats, minutes = runs * MONTH_S / HEARTBEAT_S, MONTH_S / 60
    reads = runs * LEASE_KIB / 4 * LOOKS_A_SWEEP * MONTH_S / SWEEP_S
    calls = max(0.0, heartbeats + minutes - FREE_CALLS)
    looking_s = 50.0 if runs else 1.0
    gib_s = max(
        0.0, heartbeats * HEARTBEAT_S_BILLED * WEBHOOK_GIB + minutes * looking_s * WATCHER_GIB - FREE_GIB_S
    )
    return Month(heartbeats * USD_WRITE, reads * USD_READ, calls * USD_CALL + gib_s * USD_GIB_S)


def interpreter() -> tuple[str, str] | None:
    """Return an interpreter that the functions run on, and its version; None if there is none on PATH."""
    for version in PYTHONS:
        found = shutil.which(f"python{version}")
        if (
            found is not None
            and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
        ):
            return found, version
    return None


@dataclass(frozen=True)
class Start:
    """One fresh process: its milliseconds, and its modules."""

    cpu_ms: float
    wall_ms: float
    modules: int


def started(python: str, folder: Path, what: str) -> Start:
    command = [python, "-B", "-I", "-c", SCRIPT.format(folder=str(folder), what=what, starting=STARTING)]
    env = {"PYDANTIC_DISABLE_PLUGINS": "__all__", "AWS_EC2_METADATA_DISABLED": "true"}
    cpu_s, wall_s, modules = subprocess.run(
        command, env=env, check=True, capture_output=True, text=True
    ).stdout.split()
    return Start(float(cpu_s) * 1000, float(wall_s) * 1000, int(modules))


def main(quick: bool = False) -> None:
    console = Console()
    found = interpreter()
    if found is None:
        console.print(f"imports are not measured: there is no Python {' or '.join(PYTHONS)} on PATH")
    else:
        _show_imports(console, *found, times=5 if quick else 20)
    if not quick:
        _show_sizes(console, found[1] if found is not None else PYTHONS[0])
    _show_prices(console)


def _show_imports(console: Console, python: str, version: str, *, times: int) -> None:
    machine = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    made = package(own(), pins(), Target(machine, version), console.print)
    starts: dict[str, list[Start]] = {name: [] for name in IMPORTS}
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(BytesIO(made.data)).extractall(folder)
        for _ in range(times):
            for name, (what, _) in IMPORTS.items():
                starts[name].append(started(python, Path(folder), what))
    table = Table(
        "in a fresh process",
        "CPU ms",
        "least",
        "wall ms",
        "below",
        "modules",
        title=f"median of {times}",
        padding=(0, 0),
    )
    for name, some in starts.items():
        cpu_ms, wall_ms = (
            statistics.median(figures)
            for figures in zip(*((one.cpu_ms, one.wall_ms) for one in some), strict=True)
        )
        goal, modules = IMPORTS[name][1], some[0].modules
        table.add_row(
            name,
            f"{cpu_ms:.0f}",
            f"{min(one.cpu_ms for one in some):.0f}",
            f"{wall_ms:.0f}",
            str(goal or "-"),
            str(modules),
        )
    console.print(table)


def _show_sizes(console: Console, version: str) -> None:
    table = Table("zip", "MiB", "unpacked MiB", padding=(0, 0))
    for machine in MACHINES:
        made = package(own(), pins(), Target(machine, version), lambda _: None)
        table.add_row(
            f"{machine}, Python {version}",
            f"{len(made.data) / 2**20:.1f}",
            f"{made.unpacked_bytes / 2**20:.0f}",
        )
    console.print(table)


def _show_prices(console: Console) -> None:
    prices = Table("runs at once", "heartbeats $", "sweeps $", "functions $", "a month $")
    for runs in (0, 10, 1_000, 100_000):
        of = month(runs)
        prices.add_row(
            f"{runs:,}",
            f"{of.heartbeats:,.2f}",
            f"{of.sweeps:,.2f}",
            f"{of.functions:,.2f}",
            f"{of.total:,.2f}",
        )
    console.print(prices)


if __name__ == "__main__":
    main("--quick" in sys.argv)

"""Heartbeats: how many per second the webhook stores and answers, and how fast, on SQLite with
synchronous=FULL and one core.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import psutil
from fastapi import FastAPI
from rich.console import Console
from rich.table import Table
from starlette.types import ASGIApp, Receive, Scope, Send

from prime_train.runs.run import Change, RunState
from prime_train.runs.store import Store
from prime_train.runs.wire import SIGNATURE_HEADER, TIMESTAMP_HEADER, Phase, attempt_key, sign
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.webhook.agent_calls import HeartbeatCall
from prime_train.webhook.app import create_app
from prime_train.webhook.handling import record
from prime_train.webhook.requests import Request
from prime_train.webhook.server.host import ServingHost
from prime_train.webhook.server.http_server import HttpServer
from prime_train.webhook.server.open_files import connection_limits
from prime_train.webhook.server.serve import calm_collector
from prime_train.webhook.state import WebhookContext
from tests import builders
from tests.buckets import no_bucket
from tests.webhook.calls import parse

RUNS = 1000
CONNECTIONS = 64
BODY_BYTES = 604
SEQ_CHARS = 6
HEARTBEATS_A_SECOND_MAX = 12_000
"""The highest speed for which enough heartbeats are signed beforehand; above it, heartbeats would repeat and
not be stored.
"""
SECONDS_MAX = 20
"""Longest measurement: a signature is valid for a minute, and those of a measurement are made right before
it.
"""
MASTER = b"a master key of the benchmark's own"
START_S_MAX = 60
T = TypeVar("T")
ROOT = Path(__file__).parents[2]

LUA = """
local requests, at = {}, 0
function init(args)
  local file = io.open(args[1], "rb")
  while true do
    local size = file:read(8)
    if not size then break end
    requests[#requests + 1] = file:read(tonumber(size))
  end
  file:close()
end
function request()
  at = at + 1
  return requests[(at - 1) % #requests + 1]
end
function done(summary, latency)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('\\n{"requests": %d, "us": %d, "p50_us": %d, "p99_us": %d, "bad": %d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), bad))
end
"""


@dataclass(frozen=True)
class Shot:
    """One measurement. `stored`: heartbeats found in the store afterwards; None if nothing is stored.
    `cpu_s`: the server's CPU time.
    """

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    bad: int
    stored: int | None = None
    cpu_s: float = 0.0

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


# ------------------------------------------------------------------------------------------------------------
# the material


def run_id(number: int) -> str:
    return f"bench-{number:04d}"


def fill(store: Store) -> None:
    """Store runs that train, each with an open lease that has received no heartbeat."""
    for number in range(RUNS):
        run = builders.run(RunState.TRAINING, run_id=run_id(number), next_check_s=2**31)
        store.create(run)
        lease = replace(builders.lease(run, heartbeat=None), seq=0, version=1)
        store.save(Change(replace(run, version=run.version + 1), lease, lease_version=0))


def signed(count: int, now_s: int) -> Iterator[tuple[str, dict[str, str], bytes]]:
    """Return path, headers and body of `count` heartbeats, with rising numbers: each run in turn, in an order
    that follows no page of the store.
    """
    keys = [attempt_key(MASTER, run_id(number), 1) for number in range(RUNS)]
    order = random.Random(1).sample(range(RUNS), RUNS)
    for at in range(count):
        seq, turn = divmod(at, RUNS)
        number = order[turn]
        path = f"/v1/runs/{run_id(number)}/1/heartbeat"
        body = _body(run_id(number), seq + 1)
        yield (
            path,
            {TIMESTAMP_HEADER: str(now_s), SIGNATURE_HEADER: sign(keys[number], now_s, "POST", path, body)},
            body,
        )


def _template() -> str:
    """Return a heartbeat with every field, of the size used in other measurements of this kind."""
    fields = {
        "loss": 1.234567,
        "reward": 0.123456,
        "gpu_util_pct": 97.5,
        "gpu_mem_mib": 71234.0,
        "disk_free_gib": 812.25,
    }
    heartbeat = builders.heartbeat(
        7,
        run=run_id(0),
        phase=Phase.TRAIN,
        step=123456,
        step_age_s=3,
        step_slow_s=4.321,
        uploaded_step=123000,
        **fields,
    )
    short = BODY_BYTES - len(heartbeat.model_dump_json()) - (SEQ_CHARS - 1)
    return heartbeat.model_copy(
        update={"note": "n" * 200, "sick_detail": "d" * (short - 200)}
    ).model_dump_json()


_HEAD, _TAIL = _template().replace(run_id(0), "%s").split('"seq":7', 1)


def _body(run: str, seq: int) -> bytes:
    return f'{_HEAD % run}"seq":{seq:<{SEQ_CHARS}}{_TAIL}'.encode()


def write_requests(path: Path, count: int) -> None:
    """Write complete HTTP requests, each preceded by its length in eight digits."""
    with path.open("wb") as file:
        for where, headers, body in signed(count, int(time.time())):
            lines = [
                f"POST {where} HTTP/1.1",
                "host: 127.0.0.1",
                "content-type: application/json",
                f"content-length: {len(body)}",
            ]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            raw = "\r\n".join([*lines, "", ""]).encode() + body
            file.write(b"%08d" % len(raw) + raw)


def read_requests(path: Path) -> list[bytes]:
    requests = []
    with path.open("rb") as file:
        while size := file.read(8):
            requests.append(file.read(int(size)))
    return requests


# ------------------------------------------------------------------------------------------------------------
# the servers


def _trivial_fastapi() -> FastAPI:
    app = FastAPI()

    @app.post("/v1/runs/{run}/{attempt}/heartbeat")
    async def heartbeat(run: str, attempt: int) -> dict[str, str]:
        return {"outcome": "ok"}

    return app


async def _trivial_asgi(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"16")]})
    await send({"type": "http.response.body", "body": b'{"outcome":"ok"}'})


def _app(kind: str, database: Path) -> ASGIApp:
    if kind == "trivial-fastapi":
        return _trivial_fastapi()
    if kind == "trivial-asgi":
        return _trivial_asgi
    return create_app(ServingHost(webhook(SqliteStore(database))))


def webhook(store: Store) -> WebhookContext:
    return WebhookContext(store, (MASTER,), secrets={}, bucket_url="file:///nowhere", bucket=no_bucket)


def serve(kind: str, database: Path, listener: int) -> None:
    """Run the server process."""
    app = _app(kind, database)
    calm_collector()
    HttpServer(app, socket.socket(fileno=listener), connection_limits()).run()


def cores() -> list[int]:
    """Return a core for the server and one for the load, if the system can pin processes; on a machine with
    one core, both share it.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    here = sorted(os.sched_getaffinity(0))
    return [here[0], here[-1]]


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Pin this process, and whatever it starts meanwhile, to one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def serving(kind: str, database: Path) -> Iterator[tuple[int, psutil.Process]]:
    """Start a server of that kind, and yield its port and its process."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.heartbeats",
            "--serve",
            kind,
            "--database",
            str(database),
        ]
        with pinned(cores()[0]):
            process = subprocess.Popen(
                [*command, "--listener", str(listener.fileno())], cwd=ROOT, pass_fds=[listener.fileno()]
            )
        port = int(listener.getsockname()[1])
    try:
        _await_answer(port)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(START_S_MAX)


def _await_answer(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=START_S_MAX) as probe:
        probe.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        if not probe.recv(1):
            raise RuntimeError("the server did not answer")


# ------------------------------------------------------------------------------------------------------------
# the load


def drive_wrk(port: int, requests: Path, seconds: int, script: Path) -> Shot:
    """Run one thread of wrk on the second core, with `CONNECTIONS` keep-alive connections."""
    script.write_text(LUA)
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{seconds}s",
        "--timeout",
        "10s",
        "-s",
        str(script),
        f"http://127.0.0.1:{port}",
    ]
    with pinned(cores()[1]):
        done = subprocess.run(
            [*command, "--", str(requests)], capture_output=True, text=True, check=True, timeout=seconds + 60
        )
    stated = json.loads(done.stdout.strip().splitlines()[-1])
    return Shot(
        stated["requests"], stated["us"] / 1e6, stated["p50_us"] / 1e3, stated["p99_us"] / 1e3, stated["bad"]
    )


def drive_python(port: int, requests: Path, seconds: int) -> Shot:
    """Make the same load from Python, if there is no wrk. It is slower than the server, so its figures are
    lower bounds.
    """
    with pinned(cores()[1]):
        return asyncio.run(_drive(port, iter(read_requests(requests)), time.monotonic() + seconds, seconds))


async def _drive(port: int, raw: Iterator[bytes], end_s: float, seconds: int) -> Shot:
    times: list[float] = []
    bad = 0

    async def connection() -> None:
        nonlocal bad
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in raw:
            began = time.monotonic()
            if began > end_s:
                break
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            await reader.readexactly(length)
            bad += not head.startswith(b"HTTP/1.1 200")
            times.append((time.monotonic() - began) * 1000)
        writer.close()

    workers: list[Awaitable[None]] = [connection() for _ in range(CONNECTIONS)]
    await asyncio.gather(*workers)
    ranks = statistics.quantiles(times, n=100)
    return Shot(len(times), float(seconds), ranks[49], ranks[98], bad)


def measure(kind: str, filled: Path, seconds: int) -> Shot:
    """Make one measurement with a fresh copy of the filled store, and heartbeats that are signed now. Raises
    RuntimeError if one of them is refused, or answered without being stored.
    """
    with tempfile.TemporaryDirectory() as folder:
        database, requests = Path(folder) / "control.sqlite", Path(folder) / "requests"
        shutil.copy(filled, database)
        write_requests(requests, seconds * HEARTBEATS_A_SECOND_MAX)
        with serving(kind, database) as (port, process):
            before = process.cpu_times()
            if shutil.which("wrk"):
                shot = drive_wrk(port, requests, seconds, Path(folder) / "heartbeats.lua")
            else:
                shot = drive_python(port, requests, seconds)
            after = process.cpu_times()
            shot = replace(shot, cpu_s=after.user + after.system - before.user - before.system)
        if kind.startswith("trivial"):
            return shot
        store = SqliteStore(database)
        stored = sum(held.lease.seq for number in range(RUNS) if (held := store.load(run_id(number))))
        store.close()
        if shot.bad or stored < shot.requests:
            raise RuntimeError(
                f"{kind}: of {shot.requests} heartbeats {shot.bad} were refused and {stored} stored"
            )
        return replace(shot, stored=stored)


# ------------------------------------------------------------------------------------------------------------
# in process


def batched(count: int, filled: Path, size: int) -> Shot:
    """Measure `parse` and `record` in groups on SQLite: the hot path, without HTTP and threads."""
    now_s = int(time.time())
    requests = [Request("POST", path, headers, body, now_s) for path, headers, body in signed(count, now_s)]
    groups = [requests[at : at + size] for at in range(0, count, size)]
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "control.sqlite"
        shutil.copy(filled, database)
        store = SqliteStore(database)
        here = webhook(store)

        def group(some: list[Request]) -> int:
            calls = [call for request in some if isinstance(call := parse(here, request), HeartbeatCall)]
            return max(response.status for response in record(here, calls, now_s))

        shot = _timed(groups, group)
        store.close()
    return replace(shot, requests=count)


def _timed(work: list[T], do: Callable[[T], int]) -> Shot:
    times, bad = [], 0
    for piece in work:
        began = time.perf_counter()
        bad += do(piece) != 200
        times.append((time.perf_counter() - began) * 1000)
    ranks = statistics.quantiles(times, n=100)
    return Shot(len(work), sum(times) / 1000, ranks[49], ranks[98], bad)


# ------------------------------------------------------------------------------------------------------------
# the table

SERVERS = {
    "trivial-fastapi": "a constant, FastAPI (peer)",
    "trivial-asgi": "a constant, bare ASGI (peer)",
    "application": "the application",
}
GOALS = {"application": 3500}


def main(quick: bool = False) -> None:
    seconds, rounds = (3, 1) if quick else (10, 3)
    assert seconds <= SECONDS_MAX
    console = Console()
    load = (
        "wrk"
        if shutil.which("wrk")
        else "a Python client, slower than the server: lower bounds only; `apt-get install wrk` for true ones"
    )
    console.print(
        f"{RUNS} runs, {CONNECTIONS} keep-alive connections, signed heartbeats of {BODY_BYTES} B; server on "
        f"one core; load: {load}"
    )
    with tempfile.TemporaryDirectory() as folder:
        filled = Path(folder) / "filled.sqlite"
        store = SqliteStore(filled)
        fill(store)
        store.close()
        shots: dict[str, list[Shot]] = {kind: [] for kind in SERVERS}
        for _ in range(rounds):  # in turns, so that a busy moment of the machine meets all of them
            for kind in SERVERS:
                shots[kind].append(measure(kind, filled, seconds))
        console.print(_served(shots))
        count = 20_000 if quick else 100_000
        console.print(_in_process(_batches(count, filled)))


def _batches(count: int, filled: Path) -> dict[str, Shot]:
    return {
        f"SQLite, {size} a transaction": batched(count if size > 1 else count // 10, filled, size)
        for size in (1, 64)
    }


def _served(shots: dict[str, list[Shot]]) -> Table:
    table = Table(
        "one core, HTTP",
        "heartbeats/s",
        "best",
        "p50 ms",
        "p99 ms",
        "CPU us",
        "bad",
        "stored",
        "to beat",
        padding=(0, 0),
    )
    for kind, some in shots.items():
        middle = sorted(some, key=lambda shot: shot.per_s)[len(some) // 2]
        best = max(shot.per_s for shot in some)
        stored = "-" if middle.stored is None else f"{middle.stored / middle.requests:.1%}"
        figures = [
            f"{middle.per_s:,.0f}",
            f"{best:,.0f}",
            f"{middle.p50_ms:.1f}",
            f"{middle.p99_ms:.1f}",
            f"{middle.cpu_s / middle.requests * 1e6:.0f}",
            str(middle.bad),
            stored,
        ]
        table.add_row(SERVERS[kind], *figures, f"{GOALS[kind]:,}" if kind in GOALS else "-")
    return table


def _in_process(shots: dict[str, Shot]) -> Table:
    table = Table("in process", "heartbeats/s", "p50 ms a call", "p99 ms a call", "bad")
    for name, shot in shots.items():
        table.add_row(name, f"{shot.per_s:,.0f}", f"{shot.p50_ms:.3f}", f"{shot.p99_ms:.3f}", str(shot.bad))
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", choices=SERVERS)
    parser.add_argument("--database", type=Path)
    parser.add_argument("--listener", type=int)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.database, options.listener)
    else:
        main(quick=options.quick)

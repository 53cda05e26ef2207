"""A sweep: finding the runs that are due among very many, and deciding what to do with them."""

import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from prime_train.buckets.folder import FolderBucket
from prime_train.providers.memory import MemoryPods
from prime_train.runs.run import CHECK_S_MAX, Change, RunState
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.watch.context import Context
from prime_train.watch.sweeps import DUE_MAX, sweep
from tests import builders

DUE = 10
LATER_S = int(time.time()) + CHECK_S_MAX
"""When the other runs are due; one whose check is further ahead is due at once."""
TO_BEAT_MS = {100_000: ("0.13", "58")}
"""Published measurements with and without an index."""

_COPIES = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
_RUNS = f"""{_COPIES} INSERT INTO runs (run_id, version, state, next_check_s, created_s, run)
    SELECT printf('r-%06d', i), version, state, {LATER_S}, created_s, replace(run, '"tiny-1"', printf('"r-%06d"', i)) FROM runs, n"""
_LEASE = """attempt, open, version, seq, heartbeat_s, overdue_s, "order", order_reason, committed_step, committed_key, identity"""
_LEASES = f"""{_COPIES} INSERT INTO leases (run_id, {_LEASE}, heartbeat)
    SELECT printf('r-%06d', i), {_LEASE}, replace(heartbeat, '"tiny-1"', printf('"r-%06d"', i)) FROM leases, n"""
_DUE = (
    f"UPDATE runs SET next_check_s = {builders.T0_S} WHERE run_id IN (SELECT run_id FROM runs ORDER "
    "BY "
    f"run_id LIMIT {DUE})"
)


def fill(path: Path, runs: int) -> None:
    """Store runs that train and have just sent a heartbeat: one through the store, the others copied inside
    the file.
    """
    store = SqliteStore(path)
    run = builders.run(RunState.TRAINING)
    store.create(run)
    lease = replace(builders.lease(run), version=1, heartbeat_s=int(time.time()))
    store.save(Change(replace(run, version=run.version + 1, next_check_s=LATER_S), lease, lease_version=0))
    store.close()
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(_RUNS, (runs - 1,))
        sql.execute(_LEASES, (runs - 1,))
        sql.execute(_DUE)


def median_ms(times: int, do: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    taken = []
    for _ in range(times):
        before()
        began = time.perf_counter()
        do()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def measure(folder: Path, runs: int, repeats: int) -> list[str]:
    """Return one row: the query with and without the index, and a complete sweep."""
    path, bare = folder / f"{runs}.sqlite", folder / f"{runs}-bare.sqlite"
    fill(path, runs)
    shutil.copy(path, bare)
    with closing(sqlite3.connect(bare)) as sql, sql:
        sql.execute("DROP INDEX runs_due")
    store, unindexed = SqliteStore(path), SqliteStore(bare)
    now_s = int(time.time())
    assert len(store.due(now_s, DUE_MAX)) == len(unindexed.due(now_s, DUE_MAX)) == DUE
    indexed_ms = median_ms(repeats * 10, lambda: store.due(now_s, DUE_MAX))
    unindexed_ms = median_ms(repeats, lambda: unindexed.due(now_s, DUE_MAX))
    world = Context(
        store, FolderBucket(folder / "bucket", make=True), MemoryPods(), b"master", "http://127.0.0.1:1"
    )
    with closing(sqlite3.connect(path)) as sql:

        def again() -> None:
            with sql:
                sql.execute(_DUE)

        sweep_ms = median_ms(repeats, lambda: sweep(world, now_s), again)
    vitals_ms = median_ms(repeats, store.lease_statuses)
    store.close()
    unindexed.close()
    goal = TO_BEAT_MS.get(runs, ("-", "-"))
    return [
        f"{runs:,}",
        f"{indexed_ms:.3f}",
        goal[0],
        f"{unindexed_ms:.2f}",
        goal[1],
        f"{sweep_ms:.1f}",
        f"{vitals_ms:.1f}",
    ]


def main(quick: bool = False) -> None:
    headings = ("runs", "due ms", "to beat", "no index ms", "to beat", "sweep ms", "life signs ms")
    table = Table(*headings, title=f"{DUE} runs are due", padding=(0, 0))
    with tempfile.TemporaryDirectory() as name:
        for runs in (100, 10_000) if quick else (100, 10_000, 100_000):
            table.add_row(*measure(Path(name), runs, 5 if quick else 21))
    console = Console()
    console.print(table)
    console.print(
        "SQLite, synchronous=FULL; every run trains and just sent a heartbeat. due: the query for the runs "
        "to look at; no index: the same"
    )
    console.print(
        "(peer); sweep: all of it, the decisions made durable one by one, and the life signs of all runs "
        "read (last column)."
    )


if __name__ == "__main__":
    main()

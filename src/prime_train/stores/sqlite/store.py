"""The store in one SQLite file, shared by all processes of one machine: CLI, server, watchers.

Durability. WAL with `synchronous=FULL`: when a method returns, what it wrote survives a power loss. One
commit costs one flush of the log, so `heartbeats` writes many heartbeats in one transaction before it
returns.

Concurrency. Each call borrows a connection from a small pool: readers never wait for the writer (WAL), a slow
`list_runs` delays no heartbeat, and the number of connections is that of concurrent calls, not of threads.
Writers of one process take turns at a lock, which wakes the next one at once; SQLite's own polling is needed
only for writers of other processes. Every write begins with BEGIN IMMEDIATE, so that what it read cannot
change before it commits.

Layout. What changes with each heartbeat is in `leases`, in small rows and columns; no index contains a column
that a heartbeat changes. A run is stored as JSON, with the columns that are queried beside it. A run's
`version` and `next_check_s` are authoritative in their columns: `wake` changes them there without reading the
JSON, and `load` puts them into the run.

Time. The store's seconds are the machine's uptime plus an offset in the row `clock`, which the first process
of each boot writes and all others use (`prime_train.clock`), so that no change of a wall clock, of the
machine or of one process, affects a decision. The row also keeps the last known time, at most `NOTED_S` old,
so that a boot with a wrong wall clock cannot set the store's time back.

A store must not be used across `fork`.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from prime_train.clock import Anchor, anchored, boot_id, uptime_s
from prime_train.errors import PermanentError
from prime_train.runs.breaker import Watch
from prime_train.runs.run import CHECK_S_MAX, Alert, Change, HistoryEvent, Lease, Run
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord
from prime_train.runs.stored_json import (
    StoredRun,
    dump,
    first_problem,
    history_from,
    load,
    one_record,
    readable,
    readable_alone,
    runs_and_unreadable,
    unreadable_alerts,
    unreadable_events,
)
from prime_train.runs.unreadable import Unreadable
from prime_train.runs.wire import Commit, Heartbeat, Order, Outcome
from prime_train.stores.sqlite.file import BUSY_S_MAX, File
from prime_train.stores.sqlite.rows import lease_of, lease_row, lease_status, run_of
from prime_train.stores.sqlite.schema import migrate

_CREATE_RUN = """INSERT INTO runs (run_id, version, state, next_check_s, created_s, run) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (run_id) DO NOTHING"""
_CREATE_LEASE = """INSERT INTO leases (attempt, open, version, seq, heartbeat_s, heartbeat, "order", order_reason, committed_step,
    committed_key, identity, run_id, overdue_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_LOAD = """SELECT r.run, r.version, r.next_check_s, l.attempt, l.open, l.version, l.seq, l.heartbeat_s, l.heartbeat, l."order",
    l.order_reason, l.committed_step, l.committed_key, l.identity FROM runs r LEFT JOIN leases l ON l.run_id = r.run_id
    WHERE r.run_id = ?"""
_LIST = """SELECT r.run_id, r.run, r.version, r.next_check_s, l.attempt, l.open, l.version, l.seq, l.heartbeat_s, l.heartbeat, l."order",
    l.order_reason, l.committed_step, l.committed_key, l.identity FROM runs r LEFT JOIN leases l ON l.run_id = r.run_id
    ORDER BY r.created_s DESC, r.run_id"""
_EVENTS = "SELECT run_id, event FROM history_events ORDER BY place"
_WAITING_ALERTS = "SELECT key, alert FROM outbox WHERE sent = 0 ORDER BY place"
_SAVE_RUN = (
    "UPDATE runs SET version = ?, state = ?, next_check_s = ?, run = ? WHERE run_id = ? AND version = ?"
)
_SAVE_LEASE = """UPDATE leases SET attempt = ?, open = ?, version = ?, seq = ?, heartbeat_s = ?, heartbeat = ?, "order" = ?,
    order_reason = ?, committed_step = ?, committed_key = ?, identity = ? WHERE run_id = ? AND version = ?"""
_SAVE_OVERDUE = "UPDATE leases SET overdue_s = ?1 WHERE run_id = ?2 AND overdue_s <> ?1"
_HAPPENED = "INSERT INTO history_events (run_id, event) VALUES (?, ?)"
_ENQUEUE_ALERT = "INSERT INTO outbox (key, alert) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
_WAKE = (
    "UPDATE runs SET next_check_s = min(ifnull(next_check_s, ?1), ?1), version = version + 1 WHERE run_id = "
    "?2"
)
# Two index searches; OR would scan the index.
_DUE = """SELECT run_id FROM (
    SELECT next_check_s, run_id FROM runs WHERE next_check_s <= ?1
    UNION ALL SELECT next_check_s, run_id FROM runs WHERE next_check_s > ?2)
    ORDER BY next_check_s, run_id LIMIT ?3"""
_LEASE_STATUSES = "SELECT run_id, attempt, heartbeat_s, overdue_s FROM leases WHERE open = 1 ORDER BY run_id"
_HEARTBEAT = """UPDATE leases SET version = version + 1, seq = ?1, heartbeat_s = ?2, heartbeat = ?3
    WHERE run_id = ?4 AND attempt = ?5 AND identity = ?6 AND open = 1 AND seq < ?1"""
_ORDERS = """SELECT l.run_id, l.attempt, l.identity, l."order", l.order_reason, l.committed_step
    FROM json_each(?) named JOIN leases l ON l.run_id = named.value WHERE l.open = 1"""
_COMMIT = """UPDATE leases SET version = version + 1, committed_step = ?1, committed_key = ?2
    WHERE run_id = ?3 AND attempt = ?4 AND identity = ?5 AND open = 1 AND committed_step < ?1
    RETURNING "order", order_reason, committed_step"""
_COMMITTED = """SELECT "order", order_reason, committed_step FROM leases
    WHERE run_id = ?3 AND attempt = ?4 AND identity = ?5 AND open = 1 AND committed_step >= ?1"""
_HISTORY = "SELECT event FROM history_events WHERE run_id = ? ORDER BY place"
_OUTBOX = "SELECT alert FROM outbox WHERE sent = 0 ORDER BY place LIMIT ?"
_LACKING = """SELECT alert FROM outbox o WHERE sent = 0
    AND NOT EXISTS (SELECT 1 FROM outbox_sent s WHERE s.place = o.place AND s.notifier = ?) ORDER BY place LIMIT ?"""
_WAITING = "SELECT place FROM outbox WHERE key = ? AND sent = 0"
_SENT_BY = "INSERT INTO outbox_sent (place, notifier) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SENT_TO = "SELECT notifier FROM outbox_sent WHERE place = ?"
_FORGET_SENT_BY = "DELETE FROM outbox_sent WHERE place = ?"
_CLAIM = """INSERT INTO outbox_claims (place, notifier, owner, until_s)
    SELECT o.place, ?2, ?3, ?5 FROM outbox o WHERE o.key = ?1 AND o.sent = 0
        AND NOT EXISTS (SELECT 1 FROM outbox_sent s WHERE s.place = o.place AND s.notifier = ?2)
    ON CONFLICT (place, notifier) DO UPDATE SET owner = excluded.owner, until_s = excluded.until_s
        WHERE outbox_claims.owner = excluded.owner OR outbox_claims.until_s <= ?4"""
_FORGET_CLAIMS = "DELETE FROM outbox_claims WHERE place = ?"
_SENT = "UPDATE outbox SET sent = 1 WHERE place = ?"
_CLOCK = "SELECT boot, offset_s, last_s FROM clock"
_SAVE_CLOCK = "INSERT OR REPLACE INTO clock (one, boot, offset_s, last_s) VALUES (1, ?, ?, ?)"
_NOTE_CLOCK = "UPDATE clock SET last_s = max(last_s, ?)"
_SAVE_WATCH = "INSERT OR REPLACE INTO watch (one, version, watch) VALUES (1, ?, ?)"


NOTED_S = 10
"""Seconds by which the stored last known time may lag behind."""


class SqliteStore:
    """A `Store` in one file. Opening creates or migrates it, and raises PermanentError if it is damaged,
    foreign or of a newer version.

    `busy_s`: longest wait in seconds for other writers of this process, and then for another process, before
    a TemporaryError.
    """

    def __init__(self, path: Path, *, busy_s: float = BUSY_S_MAX) -> None:
        self._file = File(path, busy_s=busy_s)
        with self._file.connection() as sql:
            migrate(sql, path)
        self._anchor = self._anchored()
        self._noted_s = 0

    def now_s(self) -> int:
        return int(self._anchor.now_s(uptime_s()))

    def close(self) -> None:
        """Close the idle connections. Later calls open new ones."""
        self._file.close()

    def create(self, run: Run) -> bool:
        row = (run.run_id, run.version, run.state.value, run.next_check_s, run.created_s, dump(run))
        leased = (*lease_row(Lease(run.run_id)), run.run_id, run.spec.health.overdue_s)
        with self._file.writing() as sql:
            if sql.execute(_CREATE_RUN, row).rowcount == 0:
                return False
            sql.execute(_CREATE_LEASE, leased)
            self._note_time(sql)
        return True

    def load(self, run_id: str) -> RunRecord | None:
        rows = self._file.read(_LOAD, run_id)
        if not rows:
            return None
        return one_record(_stored(run_id, *rows[0]), str(self._file.path))

    def list_runs(self) -> list[Run]:
        return self._records()[0]

    def unreadable(self) -> list[Unreadable]:
        return [
            *self._records()[1],
            *unreadable_events(self._file.read(_EVENTS)),
            *unreadable_alerts(self._file.read(_WAITING_ALERTS)),
        ]

    def _records(self) -> tuple[list[Run], list[Unreadable]]:
        return runs_and_unreadable(_stored(*row) for row in self._file.read(_LIST))

    def save(self, change: Change) -> bool:
        run, lease = change.run, change.lease
        row = (run.version, run.state.value, run.next_check_s, dump(run), run.run_id, run.version - 1)
        leased = (*lease_row(lease), run.run_id, change.lease_version) if lease is not None else None
        events = [(run.run_id, dump(event)) for event in change.events]
        alerts = [(alert.key, dump(alert)) for alert in change.alerts]
        with self._file.writing() as sql:
            if sql.execute(_SAVE_RUN, row).rowcount == 0:
                return False
            if leased is not None and sql.execute(_SAVE_LEASE, leased).rowcount == 0:
                sql.execute("ROLLBACK")
                return False
            sql.execute(_SAVE_OVERDUE, (run.spec.health.overdue_s, run.run_id))
            sql.executemany(_HAPPENED, events)
            sql.executemany(_ENQUEUE_ALERT, alerts)
            self._note_time(sql)
        return True

    def wake(self, run_id: str, now_s: int) -> None:
        with self._file.writing() as sql:
            sql.execute(_WAKE, (now_s, run_id))

    def due(self, now_s: int, limit: int) -> list[str]:
        return [run_id for (run_id,) in self._file.read(_DUE, now_s, now_s + CHECK_S_MAX, limit)]

    def lease_statuses(self) -> list[LeaseStatus]:
        return [lease_status(*row) for row in self._file.read(_LEASE_STATUSES)]

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        return self.heartbeats((heartbeat,), now_s)[0]

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[LeaseReply]:
        rows = [
            (
                heartbeat.seq,
                now_s,
                heartbeat.model_dump_json(),
                heartbeat.run,
                heartbeat.attempt,
                heartbeat.identity,
            )
            for heartbeat in heartbeats
        ]
        runs = json.dumps([heartbeat.run for heartbeat in heartbeats])
        with self._file.writing() as sql:
            # RETURNING would double the cost of the write. The orders can be read afterwards, because
            # heartbeats do not change them.
            accepted = [sql.execute(_HEARTBEAT, row).rowcount == 1 for row in rows]
            orders = {
                tuple(whose): order
                for *whose, order in ((*row[:3], row[3:]) for row in sql.execute(_ORDERS, (runs,)))
            }
            for heartbeat, is_new in zip(heartbeats, accepted, strict=True):
                if heartbeat.news and is_new:
                    sql.execute(_WAKE, (now_s, heartbeat.run))
            self._note_time(sql)
        return [
            _answer(is_new, orders.get((heartbeat.run, heartbeat.attempt, heartbeat.identity)))
            for heartbeat, is_new in zip(heartbeats, accepted, strict=True)
        ]

    def commit(self, commit: Commit, now_s: int) -> LeaseReply:
        row = (commit.step, commit.key, commit.run, commit.attempt, commit.identity)
        with self._file.writing() as sql:
            return _conditional(sql, _COMMIT, _COMMITTED, row)

    def history(self, run_id: str) -> list[HistoryEvent]:
        return history_from(run_id, (text for (text,) in self._file.read(_HISTORY, run_id)))

    def enqueue_alert(self, alert: Alert) -> None:
        row = (alert.key, dump(alert))
        with self._file.writing() as sql:
            sql.execute(_ENQUEUE_ALERT, row)

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        read_max = limit
        while True:
            rows = (
                self._file.read(_OUTBOX, read_max)
                if lacking is None
                else self._file.read(_LACKING, lacking, read_max)
            )
            alerts = list(readable_alone(Alert, (text for (text,) in rows)))
            if len(alerts) >= limit or len(rows) < read_max:
                return alerts[:limit]
            read_max += limit  # some cannot be read; they must not hold up those behind them

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        with self._file.writing() as sql:
            waiting = sql.execute(_WAITING, (key,)).fetchall()
            if not waiting:
                return False
            (place,) = waiting[0]
            if notifier is not None:
                sql.execute(_SENT_BY, (place, notifier))
            if not {name for (name,) in sql.execute(_SENT_TO, (place,))}.issuperset(among):
                return True
            sql.execute(_FORGET_SENT_BY, (place,))
            sql.execute(_FORGET_CLAIMS, (place,))
            sql.execute(_SENT, (place,))
        return False

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        with self._file.writing() as sql:
            return sql.execute(_CLAIM, (key, notifier, owner, now_s, until_s)).rowcount == 1

    def watch(self) -> Watch:
        rows = self._file.read("SELECT watch FROM watch")
        with self._parsing("the shared state of the watchers"):
            return load(Watch, rows[0][0]) if rows else Watch()

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        with self._file.writing() as sql:
            stored = sql.execute("SELECT version FROM watch").fetchall()
            if (stored[0][0] if stored else Watch().version) != version:
                return False
            sql.execute(_SAVE_WATCH, (watch.version, dump(watch)))
        return True

    def _anchored(self) -> Anchor:
        """Return the anchor of this boot's time; the first process that asks for it sets it."""
        anchor, is_stored, _ = _anchor_of(self._file.read(_CLOCK))
        if is_stored:
            return anchor
        with self._file.writing() as sql:
            anchor, is_stored, last_s = _anchor_of(sql.execute(_CLOCK).fetchall())
            if not is_stored:
                sql.execute(_SAVE_CLOCK, (anchor.boot, anchor.offset_s, last_s))
        return anchor

    def _note_time(self, sql: sqlite3.Connection) -> None:
        """Store the current time, within a transaction that is needed anyway."""
        now_s = self.now_s()
        if now_s >= self._noted_s + NOTED_S:
            sql.execute(_NOTE_CLOCK, (now_s,))
            self._noted_s = now_s

    @contextmanager
    def _parsing(self, what: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise PermanentError(
                f"{self._file.path}: {what} cannot be read: {first_problem(error)}"
            ) from error


def _anchor_of(rows: list[tuple[Any, ...]]) -> tuple[Anchor, bool, int]:
    """Return the anchor of this boot, whether it is the stored one, and the last known time."""
    boot, offset_s, last_s = rows[0] if rows else ("", 0.0, 0)
    stored = Anchor(boot, offset_s) if rows else None
    anchor = anchored(stored, last_s, boot=boot_id(), uptime_s=uptime_s(), wall_s=time.time())
    return anchor, anchor == stored, last_s


def _stored(run_id: str, run: str, version: int, next_check_s: int | None, *leased: Any) -> StoredRun:
    return StoredRun(
        readable(run_id), partial(run_of, run, version, next_check_s), partial(lease_of, run_id, *leased)
    )


def _answer(is_new: bool, row: Sequence[Any] | None) -> LeaseReply:
    if row is None:
        return LeaseReply(Outcome.FENCED)
    order, reason, committed_step = row
    return LeaseReply(Outcome.OK if is_new else Outcome.REPEATED, Order(order), reason, committed_step)


def _conditional(sql: sqlite3.Connection, write: str, look: str, row: tuple[str | int, ...]) -> LeaseReply:
    """Execute one conditional write. Only if it matched no row, a read separates a repeated call from a
    fenced attempt.
    """
    outcome, rows = Outcome.OK, sql.execute(write, row).fetchall()
    if not rows:
        outcome, rows = Outcome.REPEATED, sql.execute(look, row).fetchall()
    if not rows:
        return LeaseReply(Outcome.FENCED)
    order, reason, committed_step = rows[0]
    return LeaseReply(outcome, Order(order), reason, committed_step)

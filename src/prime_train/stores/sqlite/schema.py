"""The tables, and the migration of a file from an older version."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.stores.sqlite.file import APPLICATION_ID

_V1 = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE schema_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL)",
    """CREATE TABLE runs (
        run_id TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL,
        state TEXT NOT NULL,
        next_check_s INTEGER,
        created_s INTEGER NOT NULL,
        run TEXT NOT NULL
    )""",
    # Both columns, so that `due` reads only the index.
    "CREATE INDEX runs_due ON runs (next_check_s, run_id) WHERE next_check_s IS NOT NULL",
    """CREATE TABLE leases (
        run_id TEXT NOT NULL PRIMARY KEY,
        attempt INTEGER NOT NULL,
        open INTEGER NOT NULL,
        version INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        heartbeat_s INTEGER,
        overdue_s INTEGER NOT NULL,
        "order" TEXT NOT NULL,
        order_reason TEXT NOT NULL,
        committed_step INTEGER NOT NULL,
        committed_key TEXT NOT NULL,
        heartbeat TEXT
    ) WITHOUT ROWID""",
    "CREATE INDEX leases_open ON leases (run_id) WHERE open = 1",
    """CREATE TABLE history_events (
        place INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL,
        event TEXT NOT NULL
    )""",
    "CREATE INDEX history_events_of ON history_events (run_id, place)",
    """CREATE TABLE outbox (
        place INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        sent INTEGER NOT NULL DEFAULT 0,
        alert TEXT NOT NULL
    )""",
    "CREATE INDEX outbox_unsent ON outbox (place) WHERE sent = 0",
    "CREATE TABLE watch (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, watch TEXT NOT "
    "NULL)",
)

_V2 = (
    "CREATE TABLE outbox_sent (place INTEGER NOT NULL, notifier TEXT NOT NULL, PRIMARY KEY (place, "
    "notifier)) WITHOUT ROWID",
)

_V3 = (
    """CREATE TABLE outbox_claims (
        place INTEGER NOT NULL,
        notifier TEXT NOT NULL,
        owner TEXT NOT NULL,
        until_s INTEGER NOT NULL,
        PRIMARY KEY (place, notifier)
    ) WITHOUT ROWID""",
)

_V4 = ("ALTER TABLE leases ADD COLUMN identity TEXT NOT NULL DEFAULT ''",)

_V5 = (
    """CREATE TABLE clock (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        boot TEXT NOT NULL,
        offset_s REAL NOT NULL,
        last_s INTEGER NOT NULL
    )""",
)


def _rename_history(sql: sqlite3.Connection) -> None:
    """Rename the table of history in a file from before `_V1` called it that."""
    if sql.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'happenings'").fetchall():
        sql.execute("DROP INDEX happenings_of")
        sql.execute("ALTER TABLE happenings RENAME COLUMN happening TO event")
        sql.execute("ALTER TABLE happenings RENAME TO history_events")
        sql.execute("CREATE INDEX history_events_of ON history_events (run_id, place)")


Statement = str | Callable[[sqlite3.Connection], None]
_V6: tuple[Statement, ...] = (_rename_history,)

MIGRATIONS: tuple[tuple[Statement, ...], ...] = (_V1, _V2, _V3, _V4, _V5, _V6)
"""SQL statements and functions that migrate each schema version to the next one. A released entry is never
changed.
"""


def migrate(
    sql: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[Statement]] = MIGRATIONS
) -> None:
    """Migrate the schema to the newest version, in one transaction; of processes that open the file together,
    only one does it.
    """
    if _schema_version(sql, path, len(migrations)) == len(migrations):
        return
    sql.execute("BEGIN IMMEDIATE")
    for statements in migrations[_schema_version(sql, path, len(migrations)) :]:
        for statement in statements:
            if isinstance(statement, str):
                sql.execute(statement)
            else:
                statement(sql)
    sql.execute("INSERT OR REPLACE INTO schema_version (one, version) VALUES (1, ?)", (len(migrations),))
    sql.execute("COMMIT")


def _schema_version(sql: sqlite3.Connection, path: Path, newest: int) -> int:
    """Return the file's schema version, 0 for an empty file. Raises PermanentError if it is newer than
    `newest`.
    """
    empty = not sql.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchall()
    version: int = 0 if empty else sql.execute("SELECT version FROM schema_version").fetchall()[0][0]
    if version > newest:
        raise PermanentError(
            f"{path}: written by a newer version (its schema is {version}, this one knows {newest}); upgrade "
            "prime-train"
        )
    return version

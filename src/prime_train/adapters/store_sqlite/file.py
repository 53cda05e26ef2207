"""The file and the connections to it: a small pool, one lock for the writers of this process, and what SQLite's errors mean."""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from prime_train.ports import PermanentError, TemporaryError

BUSY_S_MAX = 5.0
"""Longest wait for another writer, of this process and then of another one."""
OPEN_PAUSE_S = 0.05
"""Switching a new file to WAL fails at once, without waiting, while another process does the same: so long between two tries."""
IDLE_CONNECTIONS_MAX = 16
WAL_PAGES = 4000
"""Pages (of 4 KiB) in the log before they are moved into the file: the pages of busy leases are then moved once, not each time."""
CACHE_KIB = 16 * 1024
"""Pages a connection keeps in memory."""
LOG_KEPT_BYTES = 64 * 2**20
"""A log that grew beyond this behind a long read is cut back."""
SQLITE_MIN = (3, 35)
"""The first one with RETURNING."""
APPLICATION_ID = 0x50545253
"""Stands in the file's header and tells it from other programs' databases: "PTRS"."""

_SETTINGS = (
    "PRAGMA synchronous = FULL",
    f"PRAGMA wal_autocheckpoint = {WAL_PAGES}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
    f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}",
)

_Kind = type[TemporaryError] | type[PermanentError]
_ERRORS: dict[int, tuple[_Kind, str]] = {
    sqlite3.SQLITE_BUSY: (TemporaryError, "another process is writing; try again"),
    sqlite3.SQLITE_LOCKED: (TemporaryError, "another call is writing; try again"),
    sqlite3.SQLITE_PROTOCOL: (TemporaryError, "another process is writing; try again"),
    sqlite3.SQLITE_FULL: (TemporaryError, "the disk is full; make room and try again"),
    sqlite3.SQLITE_IOERR: (TemporaryError, "the disk failed a read or a write; look at its free space and at the system's log"),
    sqlite3.SQLITE_NOMEM: (TemporaryError, "the machine is out of memory"),
    sqlite3.SQLITE_INTERRUPT: (TemporaryError, "the call was interrupted; try again"),
    sqlite3.SQLITE_CORRUPT: (PermanentError, "the file is damaged; stop every process that uses it and restore it from a backup"),
    sqlite3.SQLITE_NOTADB: (PermanentError, "the file is no SQLite database; choose another path or move the file away"),
    sqlite3.SQLITE_CANTOPEN: (PermanentError, "check that its folder exists and that this user may write there"),
    sqlite3.SQLITE_READONLY: (PermanentError, "it may not be written; check the owner and mode of the file and of its folder"),
    sqlite3.SQLITE_PERM: (PermanentError, "access was denied; check the owner and mode of the file and of its folder"),
}
_UNEXPECTED: tuple[_Kind, str] = (PermanentError, "this is not expected; please report it")


class File:
    """Connections to one database file, lent to one call each. Errors leave as TemporaryError or PermanentError."""

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self.path = path
        self._busy_s = busy_s
        self._write_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []

    def close(self) -> None:
        """Closes the connections that no call is using; a later call opens its own."""
        while (sql := self._idle_one()) is not None:
            sql.close()

    def read(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        """All rows of one statement: one moment of the file."""
        with self.connection() as sql:
            return sql.execute(statement, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, committed at the end of the block unless the block rolled it back or failed."""
        if not self._write_lock.acquire(timeout=self._busy_s):
            raise TemporaryError(f"{self.path}: other calls of this process have been writing for {self._busy_s:.0f} s; try again")
        try:
            with self.connection() as sql:
                sql.execute("BEGIN IMMEDIATE")
                yield sql
                if sql.in_transaction:
                    sql.execute("COMMIT")
        finally:
            self._write_lock.release()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for this call alone. After a failure it is closed, which rolls back what the call had begun."""
        sql = self._idle_one() or connect(self.path, busy_s=self._busy_s)
        try:
            yield sql
        except sqlite3.Error as error:
            sql.close()
            raise outside_error(error, self.path) from error
        except BaseException:
            sql.close()
            raise
        if len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(sql)
        else:
            sql.close()

    def _idle_one(self) -> sqlite3.Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None


def connect(path: Path, *, busy_s: float = BUSY_S_MAX) -> sqlite3.Connection:
    """A connection set up for this store; any thread may use it, one at a time. Raises TemporaryError or PermanentError."""
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        needed = ".".join(map(str, SQLITE_MIN))
        raise PermanentError(f"SQLite {sqlite3.sqlite_version} is too old; use a Python that was built with {needed} or newer")
    give_up_s = time.monotonic() + busy_s
    while True:
        try:
            return _connect(path, busy_s)
        except TemporaryError:
            if time.monotonic() > give_up_s:
                raise
        time.sleep(OPEN_PAUSE_S)


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    _keep_private(path)
    try:
        sql = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise outside_error(error, path) from error
    try:
        _refuse_foreign(sql, path)
        mode = sql.execute("PRAGMA journal_mode = WAL").fetchall()[0][0]
        for setting in _SETTINGS:
            sql.execute(setting)
        if mode != "wal":
            raise PermanentError(f"{path}: no write-ahead log is possible there; use a local disk, no network file system")
    except sqlite3.Error as error:
        sql.close()
        raise outside_error(error, path) from error
    except PermanentError:
        sql.close()
        raise
    return sql


def _keep_private(path: Path) -> None:
    """Runs' texts, machines' addresses and the hashes of tokens are nobody else's: the file, and the logs that SQLite keeps beside it with
    the same mode, are for their owner alone, whatever the umask was when they were made.

    A file that is there is never opened here: closing it would take all locks from the connections that this process has to it, and
    another process would then delete their log, with everything that was written since.
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            with suppress(FileNotFoundError):
                _take_from_others(path.with_name(name))
    except OSError:
        return  # SQLite says what is wrong with the path, and what to do


def _take_from_others(path: Path) -> None:
    found = path.stat()
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(stat.S_IMODE(found.st_mode) & 0o700)


def _refuse_foreign(sql: sqlite3.Connection, path: Path) -> None:
    """Before anything is written: the file is ours, or nobody's yet. Tables are counted first, since another process may be making ours
    between the two questions."""
    ((tables,),) = sql.execute("SELECT count(*) FROM sqlite_master").fetchall()
    ((owner,),) = sql.execute("PRAGMA application_id").fetchall()
    if owner != APPLICATION_ID and (owner != 0 or tables > 0):
        raise PermanentError(f"{path}: this is another program's database; choose another path")


def outside_error(error: sqlite3.Error, path: Path) -> TemporaryError | PermanentError:
    """What an error of SQLite means for the caller, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", None)
    kind, advice = _ERRORS.get(code & 0xFF, _UNEXPECTED) if code is not None else _UNEXPECTED
    return kind(f"{path}: {error}: {advice}")

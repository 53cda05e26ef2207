"""The database file and the connections to it: a small pool, one lock for the writers of this process, and
the conversion of SQLite's errors.
"""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from prime_train.errors import PermanentError, TemporaryError

BUSY_S_MAX = 5.0
"""Longest wait in seconds for another writer, of this process and then of another one."""
OPEN_PAUSE_S = 0.05
"""Seconds between tries to open a file: switching a new file to WAL fails at once while another process does
the same.
"""
IDLE_CONNECTIONS_MAX = 16
WAL_PAGES = 4000
"""Size of the log, in pages of 4 KiB, at which it is moved into the file: the pages of busy leases are then
moved once, not each time.
"""
CACHE_KIB = 16 * 1024
"""Memory in KiB for pages that a connection caches."""
LOG_KEPT_BYTES = 64 * 2**20
"""Size in bytes to which a log that grew during a long read is cut back."""
SQLITE_MIN = (3, 35)
"""The first version of SQLite that supports RETURNING."""
APPLICATION_ID = 0x50545253
"""Application id in the file's header ("PTRS" in ASCII), which distinguishes it from other programs'
databases.
"""

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
    sqlite3.SQLITE_FULL: (TemporaryError, "the disk is full; free some space and try again"),
    sqlite3.SQLITE_IOERR: (
        TemporaryError,
        "a read or write on the disk failed; check its free space and the system log",
    ),
    sqlite3.SQLITE_NOMEM: (TemporaryError, "the machine is out of memory"),
    sqlite3.SQLITE_INTERRUPT: (TemporaryError, "the call was interrupted; try again"),
    sqlite3.SQLITE_CORRUPT: (
        PermanentError,
        "the file is damaged; stop every process that uses it and restore it from a backup",
    ),
    sqlite3.SQLITE_NOTADB: (
        PermanentError,
        "the file is not a SQLite database; choose another path or move the file away",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        PermanentError,
        "check that its folder exists and that this user may write there",
    ),
    sqlite3.SQLITE_READONLY: (
        PermanentError,
        "the file is not writable; check the owner and mode of the file and of its folder",
    ),
    sqlite3.SQLITE_PERM: (
        PermanentError,
        "access was denied; check the owner and mode of the file and of its folder",
    ),
}
_UNEXPECTED: tuple[_Kind, str] = (PermanentError, "this is an unexpected error; please report it")


class File:
    """Connections to one database file, each used by one call at a time. SQLite's errors are raised as
    TemporaryError or PermanentError.
    """

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self.path = path
        self._busy_s = busy_s
        self._write_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []

    def close(self) -> None:
        """Close the idle connections. Later calls open new ones."""
        while (sql := self._idle_one()) is not None:
            sql.close()

    def read(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        """Return all rows of one statement, from one snapshot of the file."""
        with self.connection() as sql:
            return sql.execute(statement, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a transaction, committed at the end of the block unless the block rolled it back or
        failed.
        """
        if not self._write_lock.acquire(timeout=self._busy_s):
            raise TemporaryError(
                f"{self.path}: other calls of this process have been writing for {self._busy_s:.0f} s; try "
                "again"
            )
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
        """Yield a connection for this call alone. After a failure it is closed, which rolls back its
        transaction.
        """
        sql = self._idle_one() or connect(self.path, busy_s=self._busy_s)
        try:
            yield sql
        except sqlite3.Error as error:
            sql.close()
            raise external_error(error, self.path) from error
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
    """Return a connection set up for this store; any thread may use it, one at a time. Raises TemporaryError
    or PermanentError.
    """
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        needed = ".".join(map(str, SQLITE_MIN))
        raise PermanentError(
            f"SQLite {sqlite3.sqlite_version} is too old; use a Python that was built with {needed} or newer"
        )
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
        sql.text_factory = _text
    except sqlite3.Error as error:
        raise external_error(error, path) from error
    try:
        # Raise PermanentError before anything is written if the file belongs to another program. Tables are
        # counted first, since another process may be creating prime-train's tables between the two queries.
        ((tables,),) = sql.execute("SELECT count(*) FROM sqlite_master").fetchall()
        ((owner,),) = sql.execute("PRAGMA application_id").fetchall()
        if owner != APPLICATION_ID and (owner != 0 or tables > 0):
            raise PermanentError(f"{path}: this is another program's database; choose another path")
        mode = sql.execute("PRAGMA journal_mode = WAL").fetchall()[0][0]
        for setting in _SETTINGS:
            sql.execute(setting)
        if mode != "wal":
            raise PermanentError(
                f"{path}: a write-ahead log is not possible there; use a local disk, not a network file "
                "system"
            )
    except sqlite3.Error as error:
        sql.close()
        raise external_error(error, path) from error
    except PermanentError:
        sql.close()
        raise
    return sql


def _text(data: bytes) -> str:
    """Return a stored text. Bytes that are no UTF-8 become halves of surrogate pairs, which no parser takes:
    then the row that has them cannot be read, rather than all rows that are read with it.
    """
    return data.decode("utf-8", "surrogateescape")


def _keep_private(path: Path) -> None:
    """Make the file, and the logs that SQLite creates beside it with the same mode, accessible to their owner
    only, whatever the umask was: they hold the texts of runs, addresses of machines and hashes of tokens.

    An existing file is never opened here: closing it would release all locks of this process's connections to
    it, and another process would then delete their log with everything written since.
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            with suppress(FileNotFoundError):
                _take_from_others(path.with_name(name))
    except OSError:
        return  # SQLite reports what is wrong with the path, and what to do


def _take_from_others(path: Path) -> None:
    found = path.stat()
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(stat.S_IMODE(found.st_mode) & 0o700)


def external_error(error: sqlite3.Error, path: Path) -> TemporaryError | PermanentError:
    """Return the error to raise for an error of SQLite, with advice for the user."""
    code = getattr(error, "sqlite_errorcode", None)
    kind, advice = _ERRORS.get(code & 0xFF, _UNEXPECTED) if code is not None else _UNEXPECTED
    return kind(f"{path}: {error}: {advice}")

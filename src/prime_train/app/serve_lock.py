"""The lock of the one process that serves a home, and what it says of its holder.

The kernel releases the lock when the process ends, however it ends. So what the file says counts only while
the lock is held, and neither a killed process nor a process that got its number later can be taken for the
holder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

BACKGROUND = "background"
CHARS_MAX = 100


@dataclass(frozen=True)
class Holder:
    """The process that holds the lock. `pid`: None if it has not written that, because it has only just
    started or the disk was full; `in_background`: whether a command started it in the background.
    """

    pid: int | None
    in_background: bool

    @property
    def named(self) -> str:
        return f"process {self.pid}" if self.pid is not None else "a process that has only just started"


class Held(Exception):
    """Another process holds the lock."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(holder.named)
        self.holder = holder


@contextmanager
def held(file: Path, *, in_background: bool = False) -> Iterator[None]:
    """Hold the lock during the block. Raises Held if another process does."""
    with file.open("a+") as lock:
        if not _taken(lock, fcntl.LOCK_EX):
            raise Held(_read(lock))
        # on a full disk the lock holds nevertheless; only its holder is not named
        with suppress(OSError):
            os.ftruncate(lock.fileno(), 0)
            kind = f"{BACKGROUND}\n" if in_background else ""
            os.write(lock.fileno(), f"{os.getpid()}\n{kind}".encode())
        yield


def holder_of(file: Path) -> Holder | None:
    """Return the process that holds the lock; None if none does. Raises OSError if that cannot be looked
    up.
    """
    try:
        lock = file.open("r")
    except FileNotFoundError:
        return None
    with lock:
        return None if _taken(lock, fcntl.LOCK_SH) else _read(lock)


def _taken(lock: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(lock: TextIO) -> Holder:
    lock.seek(0)
    pid, _, kind = lock.read(CHARS_MAX).partition("\n")
    return Holder(int(pid) if pid.isdecimal() else None, kind.strip() == BACKGROUND)

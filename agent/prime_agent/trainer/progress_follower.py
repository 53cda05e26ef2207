"""Reads new lines from a progress file that the trainer appends to, truncates or replaces.

Content from before the trainer's start belongs to an older run and is skipped, except a CSV header. A file
that was truncated and has already grown past the old position is recognised because the bytes before that
position have changed.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from prime_agent.trainer.logs import Lines

POLL_S = 0.2
READ_BYTES_MAX = 2**20
READS_MAX = 64
"""Maximum number of reads per call; the next call reads the rest."""

MARK_BYTES = 64


class Follower:
    """Reader of the lines appended to the file `path`, which may be truncated, replaced or absent meanwhile.
    Only one thread at a time may call `read_new`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._inode = 0
        self._changed_ns = 0
        self._mark = b""
        self._lines = Lines()

    def skip_present(self) -> list[str]:
        """Move to the present end of the file, and return its first line, which may be a header."""
        try:
            with self._path.open("rb") as file:
                head = file.readline(READ_BYTES_MAX)
                self._inode = os.fstat(file.fileno()).st_ino
                self._place = file.seek(0, os.SEEK_END)
                self._remember(file.fileno())
        except FileNotFoundError:
            return []
        return [head.decode(errors="replace").strip()]

    def read_new(self) -> list[str]:
        """Return all complete lines since the last call; none if the file is missing or cannot be read
        now.
        """
        try:
            status = os.stat(self._path)  # noqa: PTH116 - five times a second
            if (status.st_ino, status.st_size, status.st_mtime_ns) == (
                self._inode,
                self._place,
                self._changed_ns,
            ):
                return []
            with self._path.open("rb") as file:
                return self._read(file.fileno())
        except OSError:
            return []

    def rest(self) -> list[str]:
        """Return the last line, once no further line break can follow."""
        return self._lines.end()

    @property
    def written_s(self) -> float | None:
        """When the file had last been written at the last read, in seconds since 1970; None before the first
        one.
        """
        return self._changed_ns / 1e9 if self._changed_ns else None

    def _read(self, descriptor: int) -> list[str]:
        status = os.fstat(descriptor)
        if status.st_ino != self._inode or status.st_size < self._place or not self._is_same(descriptor):
            self._inode, self._place, self._lines = status.st_ino, 0, Lines()
        self._changed_ns = status.st_mtime_ns
        found: list[str] = []
        for _ in range(READS_MAX):
            data = os.pread(descriptor, READ_BYTES_MAX, self._place)
            if not data:
                break
            self._place += len(data)
            found += self._lines.feed(data)
        self._remember(descriptor)
        return found

    def _remember(self, descriptor: int) -> None:
        start = max(0, self._place - MARK_BYTES)
        self._mark = os.pread(descriptor, self._place - start, start)

    def _is_same(self, descriptor: int) -> bool:
        return os.pread(descriptor, len(self._mark), self._place - len(self._mark)) == self._mark


class GlobFollower:
    """Reader of the lines appended to all files that match `pattern`, which has wildcards, below the folder
    `work`. Files that appear later are read from their beginning.
    """

    def __init__(self, work: Path, pattern: str) -> None:
        self._work, self._pattern = work, pattern
        self._followers: dict[Path, Follower] = {}
        self.written_s: float | None = None

    def skip_present(self) -> list[str]:
        """Move to the present ends of the files, and return their first lines, which may be headers."""
        return [line for follower in self._found() for line in follower.skip_present()]

    def read_new(self) -> list[str]:
        """Return all complete lines since the last call."""
        return self._lines(Follower.read_new)

    def rest(self) -> list[str]:
        """Return the last lines, once no further line break can follow."""
        return self._lines(Follower.rest)

    def _lines(self, read: Callable[[Follower], list[str]]) -> list[str]:
        found = []
        for follower in self._found():
            lines = read(follower)
            self.written_s = follower.written_s if lines else self.written_s
            found += lines
        return found

    def _found(self) -> list[Follower]:
        for path in sorted(self._work.glob(self._pattern)):
            self._followers.setdefault(path, Follower(path))
        return list(self._followers.values())


class FollowThread:
    """Thread that reads new lines five times a second, and once more at the end."""

    def __init__(self, follower: Follower | GlobFollower, on_lines: Callable[[list[str]], None]) -> None:
        self._follower = follower
        self._on_lines = on_lines
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def end(self, timeout_s: float) -> None:
        """Read the new lines once more, then stop."""
        self._ending.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            last = self._ending.wait(POLL_S)
            lines = self._follower.read_new()
            lines += self._follower.rest() if last else []
            if lines:
                self._on_lines(lines)
            if last:
                return

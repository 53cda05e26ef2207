"""Output of child processes: read at once, kept in bounded files, and examined line by line.

A child writes into a pipe that a dedicated thread drains. The thread never blocks on anything else: it
appends the output to a local file and to a short buffer of last lines, and passes the lines on. So output is
never lost and never blocks the trainer. A file written by the trainer itself could only be bounded by
truncating it during writes, which loses lines, and a full disk would raise an exception in the trainer's
`print`. Here a full disk only costs the log file some lines, whose bytes are counted, and the last lines are
still available. While the agent is not scheduled, the pipe holds a mebibyte.
"""

import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from prime_train.text import log_times

LINES_KEPT = 400
LINE_BYTES_MAX = 16 * 1024
LOG_BYTES_MAX = 32 * 2**20
OLD_MAX = 2
"""Number of older files kept beside the current one."""

READ_BYTES = 64 * 1024
_BREAK = re.compile(rb"[\r\n]+")

_log = logging.getLogger(__name__)


class BoundedLog:
    """A log file of at most `bytes_max` bytes, with `OLD_MAX` older ones and an index of times
    (`text/log_times.py`). Writing never raises; bytes that could not be written are counted. `now_s`: this
    machine's clock.
    """

    def __init__(
        self, path: Path, *, bytes_max: int = LOG_BYTES_MAX, now_s: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._now_s, self._noted_s = now_s, 0
        self._dropped = 0
        self._broken = False
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    @property
    def dropped_bytes(self) -> int:
        """Bytes that could not be written."""
        return self._dropped

    def write(self, data: bytes) -> None:
        """Append the data, rotating the files if needed. Never raises OSError."""
        try:
            if self._size + len(data) > self._bytes_max and self._size:
                self._rotate()
            self._note_time()
            self._size += self._file.write(data) or 0
            self._broken = False
        except OSError as error:
            self._dropped += len(data)
            if not self._broken:
                _log.warning(
                    "%s cannot be written (%s); the output is still read", self._path.name, error.strerror
                )
            self._broken = True

    def close(self) -> None:
        self._file.close()

    def _note_time(self) -> None:
        now_s = int(self._now_s())
        # Also where the clock was set back.
        if abs(now_s - self._noted_s) >= log_times.EVERY_S:
            with self._index.open("a", encoding="ascii") as index:
                index.write(log_times.entry(now_s, self._size))
            self._noted_s = now_s

    @property
    def _index(self) -> Path:
        return self._path.with_name(self._path.name + log_times.SUFFIX)

    def _rotate(self) -> None:
        for number in range(OLD_MAX, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
        fresh = self._path.open("ab", buffering=0)
        self._file.close()
        self._file, self._size = fresh, 0
        self._index.unlink(missing_ok=True)
        self._noted_s = 0


class Lines:
    """Splitter of bytes into lines. A carriage return also ends a line, because progress bars use it. Lines
    that are too long are cut.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that these bytes complete."""
        *lines, self._rest = _BREAK.split(self._rest + data)
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            self._rest = b""
        return [line[-LINE_BYTES_MAX:].decode(errors="replace") for line in lines if line]

    def end(self) -> list[str]:
        """Return the last line, once no further line break can follow."""
        rest, self._rest = self._rest, b""
        return [rest.decode(errors="replace")] if rest else []


class Drain:
    """Thread that reads a pipe to its end and closes it. `on_lines` must not block; its first exception is
    logged, and reading continues.
    """

    def __init__(
        self, descriptor: int, log: BoundedLog, on_lines: Callable[[list[str]], None], *, name: str
    ) -> None:
        self._descriptor = descriptor
        self._log = log
        self._on_lines = on_lines
        self._last: deque[str] = deque(maxlen=LINES_KEPT)
        self._lock = threading.Lock()
        self._failed = False
        self._thread = threading.Thread(target=self._read, name=f"{name}-output", daemon=True)
        self._thread.start()

    def tail(self) -> list[str]:
        """Return the last lines, oldest first."""
        with self._lock:
            return list(self._last)

    def join(self, timeout_s: float) -> bool:
        """Wait until everything is read. Return False after `timeout_s` seconds if the other end is still
        open; reading continues.
        """
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _read(self) -> None:
        lines = Lines()
        while data := os.read(self._descriptor, READ_BYTES):
            self._log.write(data)
            self._report_lines(lines.feed(data))
        self._report_lines(lines.end())
        os.close(self._descriptor)
        self._log.close()

    def _report_lines(self, lines: list[str]) -> None:
        if not lines:
            return
        with self._lock:
            self._last.extend(lines)
        try:
            self._on_lines(lines)
        except Exception:
            # A bug in the code that examines lines must not fill the pipe and block the trainer.
            if not self._failed:
                _log.exception("the output could not be checked")
            self._failed = True


def tail_text(lines: list[str], *, chars_max: int) -> str:
    return "\n".join(lines)[-chars_max:]

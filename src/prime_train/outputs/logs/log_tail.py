"""Read the ends of logs: on the disk of a pod on this machine, or in the bucket."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prime_train.app.machines import Machines
from prime_train.buckets.keys import AFTER_STREAM, STREAMS, evidence_key, stream_prefix
from prime_train.buckets.port import Bucket, small_object
from prime_train.outputs.stored_content import end_of
from prime_train.runs.run import Attempt, Run
from prime_train.text import log_times
from prime_train.text.overwritten import lines_in_the_end

LOGS = (AFTER_STREAM, "trainer.log", "smoke.log", "setup.log", "agent.log")
"""The agent's log files, in order of preference."""
TAIL_BYTES_MAX = 4 * 2**20
READ_BYTES_MAX = 256 * 1024
MATCH_CHARS = 200
"""Characters by which the end of one text is found in another."""


class Tail:
    """A reader of one growing file. A file that was rotated or replaced is read from its start."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._offset = 0
        self._inode = 0

    def move_to(self, path: Path | None) -> None:
        """Switch to another file; None keeps the current one."""
        if path is not None and path != self._path:
            self._path, self._offset, self._inode = path, 0, 0

    def last(self, lines: int) -> str:
        """Return the last `lines` lines; later calls of `more` return only what is written after them."""
        return last_lines(self._read(TAIL_BYTES_MAX, from_end=True), lines)

    def more(self) -> str:
        """Return what was written since the last read, at most `READ_BYTES_MAX` bytes."""
        return self._read(READ_BYTES_MAX, from_end=False)

    def _read(self, limit: int, *, from_end: bool) -> str:
        if self._path is None:
            return ""
        try:
            with self._path.open("rb") as file:
                seen = os.fstat(file.fileno())
                if seen.st_ino != self._inode or seen.st_size < self._offset:
                    self._offset = 0
                start = max(0, seen.st_size - limit) if from_end else self._offset
                file.seek(start)
                data = file.read(limit)
        except OSError:
            return ""  # the machine and its disk may be deleted by now
        self._inode, self._offset = seen.st_ino, start + len(data)
        return data.decode(errors="replace")


def lines_since(path: Path, since_s: int, now_s: float) -> int | None:
    """Return how many lines of the log were written in the last `since_s` seconds; None if the log has no
    index of times.
    """
    try:
        index = path.with_name(path.name + log_times.SUFFIX).read_text(encoding="ascii", errors="replace")
        offset = log_times.offset_since(index, int(now_s) - since_s)
        if offset is None:
            return 0
        with path.open("rb") as file:
            file.seek(max(offset, file.seek(0, os.SEEK_END) - TAIL_BYTES_MAX))
            return len(lines_in_the_end(file.read(TAIL_BYTES_MAX).decode(errors="replace")))
    except OSError:
        return None  # older agents write no index, and the machine may be gone by now


def log_on_disk(machines: Machines, run: Run, number: int | None = None) -> Path | None:
    """Return the path of the preferred log of attempt `number`, by default the current attempt, or None if
    its pod is not on this machine or has no log yet.
    """
    disk = machines.disk(run, number)
    if disk is None:
        return None
    found = (disk / "logs" / name for name in LOGS)
    return next((path for path in found if path.exists()), None)


@dataclass(frozen=True)
class StoredLog:
    """The end of a log in the bucket. `key`: the evidence, or the prefix of the pieces that the attempt
    uploaded while it ran.
    """

    attempt: int
    name: str
    key: str
    text: str


def stored_logs(bucket: Bucket, run: Run, number: int | None = None) -> Iterator[StoredLog]:
    """Yield the logs that the run's attempts, or attempt `number` alone, left in the bucket, newest attempt
    first, then in order of preference.
    """
    for attempt in reversed(run.attempts):
        if number in (None, attempt.number):
            yield from (
                log for name in LOGS if (log := _stored(bucket, run.run_id, attempt, name)) is not None
            )


def _stored(bucket: Bucket, run_id: str, attempt: Attempt, name: str) -> StoredLog | None:
    """Return the log as the attempt uploaded it while it ran, continued by the evidence if that is longer;
    None if there is neither.
    """
    key = evidence_key(run_id, attempt.number, name)
    evidence = (
        content.data.decode(errors="replace") if (content := small_object(bucket, key)) is not None else ""
    )
    prefix = stream_prefix(run_id, attempt.number, attempt.identity, name) if name in STREAMS else ""
    uploaded = end_of(bucket, list(bucket.list(prefix)), TAIL_BYTES_MAX) if prefix else ""
    if not evidence and not uploaded:
        return None
    return StoredLog(
        attempt.number, name, prefix.removesuffix("/") if uploaded else key, joined(uploaded, evidence)
    )


def joined(uploaded: str, evidence: str) -> str:
    """Return the end of a log of which the machine stored two texts: `uploaded`, piece by piece while it ran,
    and `evidence`, once when the attempt ended. Where both overlap, the evidence continues the uploaded text.
    """
    if not uploaded:
        return evidence
    _, found, after = evidence.rpartition(uploaded[-MATCH_CHARS:])
    return uploaded + after if found else uploaded


def stored_log(bucket: Bucket, run: Run, lines: int) -> tuple[str, str]:
    """Return the key and the last lines of the newest log in the bucket; two empty strings if there is
    none.
    """
    stored = next(stored_logs(bucket, run), None)
    return (stored.key, last_lines(stored.text, lines)) if stored is not None else ("", "")


def last_lines(text: str, lines: int) -> str:
    """Return the last lines of the text; of a progress bar, its last state."""
    return "\n".join(lines_in_the_end(text)[-lines:]) if lines else ""

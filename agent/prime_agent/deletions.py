"""Counts what the agent deletes to make room, for the run's history."""

import threading
from collections.abc import Callable
from pathlib import Path

from prime_train.runs.deletions import plus
from prime_train.runs.wire import Deletions


class DeletionCounter:
    """Deletions since the agent was started. `told` is called with all of them after each one. Safe to use
    from several threads.
    """

    def __init__(self, told: Callable[[Deletions], None]) -> None:
        self._told, self._lock, self._total = told, threading.Lock(), Deletions()

    def checkpoint(self, step: int) -> None:
        """Count a checkpoint that was deleted from the bucket."""
        self._add(Deletions(checkpoints=1, newest_step=step))

    def chunk(self, size: int) -> None:
        """Count a chunk of checkpoints that was deleted from the bucket."""
        self._add(Deletions(chunk_bytes=size))

    def output(self, size: int) -> None:
        """Count a part of an older version of an output."""
        self._add(Deletions(output_bytes=size))

    def local(self, size: int) -> None:
        """Count a committed checkpoint that was deleted from the machine's disk."""
        self._add(Deletions(local=1, local_bytes=size))

    def folder(self, size: int) -> None:
        """Count a folder that the trainer did not need any more."""
        self._add(Deletions(folders=1, local_bytes=size))

    def _add(self, more: Deletions) -> None:
        with self._lock:
            self._total = plus(self._total, more)
            self._told(self._total)


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files below a folder; what vanishes meanwhile, or cannot be looked at, counts
    as 0.
    """
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size if path.is_file() and not path.is_symlink() else 0
        except OSError:
            continue
    return total

"""Carrying out what `prime_rl_leftovers` says must be out of prime-rl's snapshot before it is launched."""

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from prime_train.trainers.prime_rl.stale_outputs import DEPTH, ENTRIES_MAX, to_move_aside

_OPENED = 2
"""Levels that are listed of every folder; below them, only checkpoints tell anything."""

_CHECKPOINTS = "checkpoints"

_log = logging.getLogger(__name__)


def move_aside(run: Path, resume_step: int | None, *, attempt: int) -> tuple[str, ...]:
    """Renames it all, and returns where it lay, seen from `run`. `resume_step`: the checkpoint that was restored. Raises OSError."""
    moves = to_move_aside(listing(run), resume_step, attempt=attempt)
    for move in moves:
        target = run / move.target
        _delete(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        (run / move.source).rename(target)
    return tuple(move.source for move in moves)


def listing(run: Path, *, entries_max: int = ENTRIES_MAX) -> list[str]:
    """Paths below `run`, those near the top first, so that the limit cuts off what tells least. Raises OSError."""
    found: list[str] = []
    for path in _below(run):
        if len(found) >= entries_max:
            _log.warning("%s holds more than %d entries; the rest is not looked at", run, entries_max)
            break
        found.append(path.relative_to(run).as_posix())
    return found


def _below(run: Path) -> Iterator[Path]:
    level = [run] if run.is_dir() else []
    for depth in range(1, DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            for path in _entries(folder):
                yield path
                if path.is_dir() and (depth < _OPENED or path.relative_to(run).parts[0] == _CHECKPOINTS):
                    below.append(path)
        level = below


def _entries(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries)


def _delete(path: Path) -> None:
    """An older leftover, whatever it is. A link goes by itself, not with what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

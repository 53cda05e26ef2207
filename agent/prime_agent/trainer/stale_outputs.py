"""Moves away what an earlier launch of the trainer left and the next launch must not find, and deletes what a
trainer no longer needs and never deletes itself, to free the disk."""

import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath

from prime_agent.checkpoints.local_disk_cleanup import SHARE_MAX
from prime_agent.deletions import bytes_below
from prime_train.trainers.stale_outputs import Disposable, StaleOutputs

ENTRIES_MAX = 100_000

_log = logging.getLogger(__name__)


def move_aside(work: Path, stale: StaleOutputs, resume_step: int | None, *, attempt: int) -> tuple[str, ...]:
    """Rename all leftovers, and return their old paths relative to the outputs' folder. `resume_step` is the
    restored checkpoint. Raises OSError.
    """
    folder = work / stale.folder
    moves = stale.to_move(listing(work, stale), resume_step, attempt=attempt)
    for move in moves:
        target = folder / move.target
        # Delete an older leftover of any type. A link itself is deleted, not its target.
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / move.source).rename(target)
    return tuple(move.source for move in moves)


def moved_aside(
    stale: StaleOutputs, paths: Collection[str], resume_step: int | None, *, attempt: int
) -> frozenset[str]:
    """Return which of these files, by their paths in the working tree, would be moved aside if they were
    there.
    """
    top = PurePosixPath(stale.folder)
    inside = {
        PurePosixPath(path).relative_to(top).as_posix(): path
        for path in paths
        if PurePosixPath(path).is_relative_to(top)
    }
    folders = {
        str(parent) for path in inside for parent in PurePosixPath(path).parents if parent != PurePosixPath()
    }
    moves = stale.to_move([*sorted(folders), *sorted(inside)], resume_step, attempt=attempt)
    sources = [PurePosixPath(move.source) for move in moves]
    return frozenset(
        path
        for below, path in inside.items()
        if any(PurePosixPath(below).is_relative_to(source) for source in sources)
    )


def listing(work: Path, stale: StaleOutputs, *, entries_max: int = ENTRIES_MAX) -> list[str]:
    """Return the paths below the outputs' folder, the upper levels first, so that the limit cuts off the
    least important ones. Raises OSError.
    """
    found: list[str] = []
    folder = work / stale.folder
    for path in _below(folder, stale):
        if len(found) >= entries_max:
            _log.warning("%s holds more than %d entries; the rest is not checked", folder, entries_max)
            break
        found.append(path.relative_to(folder).as_posix())
    return found


def _below(top: Path, stale: StaleOutputs) -> Iterator[Path]:
    level = [top] if top.is_dir() else []
    while level:
        below: list[Path] = []
        for folder in level:
            for path in _entries(folder):
                yield path
                if path.is_dir() and stale.is_opened(PurePosixPath(path.relative_to(top).as_posix())):
                    below.append(path)
        level = below


def _entries(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries)


def remove_unneeded(
    work: Path,
    disposable: Disposable,
    step: int,
    *,
    disk_path: Path,
    share_max: float = SHARE_MAX,
    told: Callable[[int], None] = lambda size: None,
) -> tuple[str, ...]:
    """Delete folders that are not needed any more at `step`, in the trainer's order, until the disk of
    `disk_path` is used up to at most the share `share_max`; return the names of the deleted folders. `told`
    is called with the bytes of each."""
    folder = work / disposable.folder
    names = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
    removed: list[str] = []
    for name in disposable.unneeded(names, step):
        if not _is_filling_up(disk_path, share_max):
            break
        if name not in names:
            continue
        size = bytes_below(folder / name)
        try:
            shutil.rmtree(folder / name)
        except FileNotFoundError:
            continue  # the trainer deleted it first
        told(size)
        removed.append(name)
    return tuple(removed)


def _is_filling_up(disk_path: Path, share_max: float) -> bool:
    usage = shutil.disk_usage(disk_path)
    # Calculated like df: blocks reserved for root do not count as free.
    return usage.used > share_max * (usage.used + usage.free)

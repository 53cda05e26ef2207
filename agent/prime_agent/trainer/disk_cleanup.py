"""Freeing of disk space: what a trainer writes, never deletes and no longer needs is deleted."""

import shutil
from collections.abc import Callable
from pathlib import Path

from prime_agent.checkpoints.local_disk_cleanup import SHARE_MAX
from prime_agent.deletions import bytes_below
from prime_train.trainers.stale_outputs import Disposable


def remove_unneeded(
    work: Path,
    disposable: Disposable,
    step: int,
    *,
    disk_path: Path,
    share_max: float = SHARE_MAX,
    told: Callable[[int], None] = lambda size: None,
) -> tuple[str, ...]:
    """Delete folders that are not needed any more at `step`, in the trainer's order, until the disk of `disk_path` is used up to at most
    the share `share_max`; return the names of the deleted folders. `told` is called with the bytes of each."""
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

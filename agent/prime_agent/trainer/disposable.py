"""Room on the disk: what a trainer writes, never removes, and does not need any more."""

import shutil
from pathlib import Path

from prime_agent.checkpoints.janitor import SHARE_MAX
from prime_train.trainers.outputs import Disposable


def remove_unneeded(work: Path, disposable: Disposable, step: int, *, disk_path: Path, share_max: float = SHARE_MAX) -> tuple[str, ...]:
    """Deletes folders that are not needed any more at `step`, in the trainer's order, until the disk of `disk_path` is no fuller than
    `share_max`; returns the names of those that went."""
    folder = work / disposable.folder
    names = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
    removed: list[str] = []
    for name in disposable.unneeded(names, step):
        if not _is_filling_up(disk_path, share_max):
            break
        if name not in names:
            continue
        try:
            shutil.rmtree(folder / name)
        except FileNotFoundError:
            continue  # the trainer was quicker
        removed.append(name)
    return tuple(removed)


def _is_filling_up(disk_path: Path, share_max: float) -> bool:
    usage = shutil.disk_usage(disk_path)
    # As df counts: what is reserved for root is nobody's.
    return usage.used > share_max * (usage.used + usage.free)

"""Room on the disk: weights that prime-rl has broadcast and never removes, though nobody reads them any more."""

import shutil
from pathlib import Path

from prime_agent.checkpoints.janitor import SHARE_MAX
from prime_train.core.spec import RunSpec
from prime_train.trainers.prime_rl.stale_outputs import broadcasts_to_remove

FOLDER = "broadcasts"


def folder_of(spec: RunSpec) -> str | None:
    """Where weights are broadcast, inside the working tree; None for trainers that broadcast none."""
    part = spec.trainer.prime_rl
    return f"{part.folder}/{FOLDER}" if part is not None else None


def remove_broadcasts(folder: Path, step: int, *, disk_path: Path, share_max: float = SHARE_MAX) -> tuple[str, ...]:
    """Deletes weights that are not needed any more at `step`, the oldest first, until the disk of `disk_path` is no fuller than
    `share_max`; returns the names of those that went."""
    names = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    removed: list[str] = []
    for name in broadcasts_to_remove(names, step):
        if not _is_filling_up(disk_path, share_max):
            break
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

"""Freeing of disk space: local checkpoints that are committed in the bucket are deleted, the oldest first."""

import shutil
from collections.abc import Callable
from pathlib import Path

from prime_agent.checkpoints.listing import size_of

SHARE_MAX = 0.85
_TRASH = ".prime-train-trash-"


def free_disk_space(
    *,
    folder: Path,
    step_of: Callable[[str], int | None],
    committed_step: int,
    keep_newest: int,
    max_disk_gib: float | None,
    disk_path: Path,
    share_max: float = SHARE_MAX,
) -> list[int]:
    """Delete checkpoints in `folder` until they use at most `max_disk_gib` and the disk of `disk_path` is used up to at most the share
    `share_max`; return the deleted steps.

    Only steps up to `committed_step` are deleted. The newest of those and the `keep_newest` newest of all are kept, however full the disk
    is.
    """
    _empty_trash(folder)
    checkpoints = _checkpoints(folder, step_of)
    sizes = {step: size_of(path) for step, path in checkpoints.items()}
    removed: list[int] = []
    for step in _expendable(sorted(checkpoints), committed_step, keep_newest):
        if not _too_full(sum(sizes.values()), max_disk_gib, disk_path, share_max):
            break
        _remove(checkpoints[step])
        del sizes[step]
        removed.append(step)
    return removed


def _checkpoints(folder: Path, step_of: Callable[[str], int | None]) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    found = ((step_of(path.name), path) for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    return {step: path for step, path in found if step is not None}


def _expendable(steps: list[int], committed_step: int, keep_newest: int) -> list[int]:
    """Return the steps that may be deleted, oldest first. The newest committed one is kept, because the trainer can resume from it without
    the bucket."""
    committed = [step for step in steps if step <= committed_step]
    kept = {*committed[-1:], *(steps[-keep_newest:] if keep_newest > 0 else [])}
    return [step for step in committed if step not in kept]


def _too_full(size: int, max_disk_gib: float | None, disk_path: Path, share_max: float) -> bool:
    if max_disk_gib is not None and size > max_disk_gib * 2**30:
        return True
    usage = shutil.disk_usage(disk_path)
    # Calculated like df: blocks reserved for root do not count as free.
    return usage.used > share_max * (usage.used + usage.free)


def _remove(path: Path) -> None:
    """Rename the checkpoint out of the trainer's folder at once, so that the trainer never finds half of one, and then delete it."""
    trash = path.resolve().parent.parent / f"{_TRASH}{path.name}"
    try:
        path.rename(trash)
    except FileNotFoundError:
        return  # the trainer deleted it first
    except OSError:
        # The checkpoint folder is a separate file system, so it cannot be renamed to a place beside that folder.
        trash = path
    shutil.rmtree(trash)


def _empty_trash(folder: Path) -> None:
    """Delete what an interrupted clean-up left behind."""
    for trash in folder.resolve().parent.glob(f"{_TRASH}*"):
        shutil.rmtree(trash)

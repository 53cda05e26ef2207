"""Room on the disk: local checkpoints that are safe in the bucket go, the oldest first."""

import shutil
from collections.abc import Callable
from pathlib import Path

from prime_agent.checkpoints.listing import size_of

SHARE_MAX = 0.85
_TRASH = ".prime-train-trash-"


def make_room(
    *,
    folder: Path,
    step_of: Callable[[str], int | None],
    committed_step: int,
    keep_newest: int,
    max_disk_gib: float | None,
    disk_path: Path,
    share_max: float = SHARE_MAX,
) -> list[int]:
    """Deletes checkpoints in `folder` until they take no more than `max_disk_gib` and the disk of `disk_path` is no fuller than
    `share_max`; returns the steps that went.

    Only steps up to `committed_step` go; the newest of those and the `keep_newest` newest of all stay, however full the disk.
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
    """Oldest first. The newest committed one is what the trainer could fall back on without the bucket."""
    committed = [step for step in steps if step <= committed_step]
    kept = {*committed[-1:], *(steps[-keep_newest:] if keep_newest > 0 else [])}
    return [step for step in committed if step not in kept]


def _too_full(size: int, max_disk_gib: float | None, disk_path: Path, share_max: float) -> bool:
    if max_disk_gib is not None and size > max_disk_gib * 2**30:
        return True
    usage = shutil.disk_usage(disk_path)
    # As df counts: what is reserved for root is nobody's.
    return usage.used > share_max * (usage.used + usage.free)


def _remove(path: Path) -> None:
    """Out of the trainer's snapshot at once, so that it never finds half a checkpoint, and then gone."""
    trash = path.resolve().parent.parent / f"{_TRASH}{path.name}"
    try:
        path.rename(trash)
    except FileNotFoundError:
        return  # the trainer was quicker
    except OSError:
        # The checkpoint folder is a file system of its own: there is no hidden place beside it.
        trash = path
    shutil.rmtree(trash)


def _empty_trash(folder: Path) -> None:
    """What a clean-up that was cut off left behind."""
    for trash in folder.resolve().parent.glob(f"{_TRASH}*"):
        shutil.rmtree(trash)

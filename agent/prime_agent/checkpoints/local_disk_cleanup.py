"""Freeing of disk space: local checkpoints that are committed in the bucket are deleted, the oldest first."""

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from prime_agent.checkpoints.units import Units

SHARE_MAX = 0.85
_TRASH = ".prime-train-trash-"


def free_disk_space(
    *,
    units: Units,
    committed_step: int,
    keep_newest: int,
    max_disk_gib: float | None,
    disk_path: Path,
    share_max: float = SHARE_MAX,
    owed: Collection[int] = (),
    told: Callable[[int], None] = lambda size: None,
) -> list[int]:
    """Delete checkpoints until they use at most `max_disk_gib` and the disk of `disk_path` is used up to at
    most the share `share_max`; return the deleted steps. `told` is called with the bytes of each.

    Only steps up to `committed_step` are deleted. The newest of those, the `keep_newest` newest of all, and
    the steps `owed`, which an upload passed over and which are still to be uploaded, are kept, however full
    the disk is. One of a fixed name, which the trainer overwrites, is left to the trainer.
    """
    for folder in units.folders():
        for trash in folder.resolve().parent.glob(f"{_TRASH}*"):
            _delete(trash)  # what an interrupted clean-up left behind
    found = [] if units.names.is_fixed else units.found()[0]
    checkpoints = {unit.step: unit for unit in found if not unit.path.is_symlink()}
    sizes = {step: unit.size for step, unit in checkpoints.items()}
    removed: list[int] = []
    for step in _expendable(sorted(checkpoints), committed_step, keep_newest, owed):
        if not _too_full(sum(sizes.values()), max_disk_gib, disk_path, share_max):
            break
        for name in checkpoints[step].members or (checkpoints[step].name,):
            if not units.names.is_shared(name):
                _remove(checkpoints[step].folder / name)
        told(sizes.pop(step))
        removed.append(step)
    return removed


def _expendable(steps: list[int], committed_step: int, keep_newest: int, owed: Collection[int]) -> list[int]:
    """Return the steps that may be deleted, oldest first. The newest committed one is kept, because the
    trainer can resume from it without the bucket.
    """
    committed = [step for step in steps if step <= committed_step]
    kept = {*owed, *committed[-1:], *(steps[-keep_newest:] if keep_newest > 0 else [])}
    return [step for step in committed if step not in kept]


def _too_full(size: int, max_disk_gib: float | None, disk_path: Path, share_max: float) -> bool:
    if max_disk_gib is not None and size > max_disk_gib * 2**30:
        return True
    usage = shutil.disk_usage(disk_path)
    # Calculated like df: blocks reserved for root do not count as free.
    return usage.used > share_max * (usage.used + usage.free)


def _remove(path: Path) -> None:
    """Rename the checkpoint out of the trainer's folder at once, so that the trainer never finds half of one,
    and then delete it.
    """
    trash = path.resolve().parent.parent / f"{_TRASH}{path.name}"
    try:
        path.rename(trash)
    except FileNotFoundError:
        return  # the trainer deleted it first
    except OSError:
        # The checkpoint folder is a separate file system, so it cannot be renamed to a place beside that
        # folder.
        trash = path
    _delete(trash)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

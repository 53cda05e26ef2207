"""Setting a checkpoint aside, so that the trainer's clean-up and an upload cannot collide.

A hard link keeps the content when the trainer removes its own name of it, and costs nothing. It is no protection where the trainer
writes into a file again: link and file are the same content. There, and where links cannot be made, files are copied, which costs
nothing either where the file system can let two files share their blocks until one is written to (Btrfs, XFS).
"""

import errno
import fcntl
import os
import shutil
import sys
from pathlib import Path

from prime_agent.checkpoints.listing import files_in
from prime_train.ports import TemporaryError
from prime_train.trainers import FileSeen

DISK_SPARE_BYTES = 256 * 2**20
"""Left free when files are copied: a full disk would fail the trainer's next save."""

FICLONE = 0x40049409
"""The request to share blocks: see ioctl_ficlone(2)."""

_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}


class Vanished(Exception):
    """The checkpoint changed or went away while it was handled; there is nothing left to upload."""


def set_aside(folder: Path, stage: Path, *, copy: bool, only_links: bool = False) -> tuple[FileSeen, ...]:
    """Fills the new folder `stage` with what is in `folder`, and says what is in it. `only_links`: nothing is copied.

    Raises Vanished when `folder` is not the same before and after, TemporaryError when there is no room for a copy, and OSError where
    links alone do not do.
    """
    clear(stage)
    before = files_in(folder)
    stage.mkdir(parents=True)
    for file in before:
        target = stage / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _take(folder / file.path, target, file.size, copy=copy, only_links=only_links)
        except FileNotFoundError as error:
            raise Vanished(f"{folder.name}/{file.path} was removed while it was set aside") from error
    aside = files_in(stage)
    if files_in(folder) != before or [(file.path, file.size) for file in aside] != [(file.path, file.size) for file in before]:
        raise Vanished(f"{folder.name} changed while it was set aside")
    return aside


def clear(stage: Path) -> None:
    """Removes `stage`, if there is one."""
    if stage.exists():
        shutil.rmtree(stage)


def _take(source: Path, target: Path, size: int, *, copy: bool, only_links: bool) -> None:
    if not copy:
        try:
            os.link(source.resolve(strict=True), target)
        except OSError as error:
            if only_links or error.errno not in _NO_LINKS:
                raise
        else:
            return
    if not _share(source, target):
        _check_room(size, target.parent)
        shutil.copyfile(source, target)
    shutil.copystat(source, target)


def _share(source: Path, target: Path) -> bool:
    """Makes `target` a file of its own whose blocks are those of `source` until either is written to. False: it cannot be done here."""
    if sys.platform != "linux":
        return False
    with source.open("rb") as content, target.open("wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), FICLONE, content.fileno())
        except OSError:
            return False  # whatever the reason, a plain copy says it better
    return True


def _check_room(size: int, disk: Path) -> None:
    free = shutil.disk_usage(disk).free
    if size + DISK_SPARE_BYTES > free:
        raise TemporaryError(f"no room to copy the checkpoint: {size / 2**30:.2f} GiB wanted, {free / 2**30:.2f} GiB free")

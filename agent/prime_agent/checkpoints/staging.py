"""Staging of a checkpoint, so that the trainer's clean-up cannot interfere with an upload.

A hard link keeps the content when the trainer deletes its own name for it, and costs nothing. It is no
protection if the trainer overwrites a file in place, because link and file share their content. In that case,
and where links are impossible, files are copied. A copy costs nothing either where the file system lets two
files share their blocks until one is written to (Btrfs, XFS).
"""

import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from prime_agent.checkpoints.listing import files_in
from prime_train.errors import TemporaryError
from prime_train.trainers.of_spec import FileInfo

DISK_MARGIN_BYTES = 256 * 2**20
"""Bytes left free when files are copied, because a full disk would fail the trainer's next save."""

FICLONE = 0x40049409
"""The ioctl request to share blocks, see ioctl_ficlone(2)."""

_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}


class Vanished(Exception):
    """The checkpoint changed or was deleted while it was handled, so there is nothing left to upload."""


def set_aside(
    folder: Path,
    stage: Path,
    *,
    copy: bool,
    only_links: bool = False,
    listed: Callable[[], tuple[FileInfo, ...]] | None = None,
) -> tuple[FileInfo, ...]:
    """Fill the new folder `stage` with the files of `folder` by hard links (or copies if `copy`), and return
    them. With `only_links`, nothing is copied. `listed`: a function that returns the files, by default all in
    `folder`.

    Raises Vanished if `folder` changes meanwhile, TemporaryError if there is no space for a copy, and OSError
    if links alone are allowed and fail.
    """
    clear(stage)
    files_now = listed or (lambda: files_in(folder))
    before = files_now()
    stage.mkdir(parents=True)
    for file in before:
        target = stage / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            take(folder / file.path, target, file.size, copy=copy, only_links=only_links)
        except FileNotFoundError as error:
            raise Vanished(f"{folder.name}/{file.path} was removed while it was staged") from error
    aside = files_in(stage)
    if files_now() != before or [(file.path, file.size) for file in aside] != [
        (file.path, file.size) for file in before
    ]:
        raise Vanished(f"{folder.name} changed while it was staged")
    return aside


def clear(stage: Path) -> None:
    """Delete `stage` if it exists."""
    if stage.exists():
        shutil.rmtree(stage)


def take(source: Path, target: Path, size: int, *, copy: bool, only_links: bool = False) -> None:
    """Link `target` to the file `source` of `size` bytes, or copy it with `copy` and where links are
    impossible. Raises TemporaryError if there is no space for a copy, and OSError.
    """
    if not copy:
        try:
            os.link(source.resolve(strict=True), target)
        except OSError as error:
            if only_links or error.errno not in _NO_LINKS:
                raise
        else:
            return
    if not _share(source, target):
        free = shutil.disk_usage(target.parent).free
        if size + DISK_MARGIN_BYTES > free:
            needed = f"{size / 2**30:.2f} GiB needed, {free / 2**30:.2f} GiB free"
            raise TemporaryError(f"not enough disk space to copy the checkpoint: {needed}")
        shutil.copyfile(source, target)
    shutil.copystat(source, target)


def _share(source: Path, target: Path) -> bool:
    """Make `target` a separate file that shares the blocks of `source` until either is written to. Return
    False if that is impossible here.
    """
    if sys.platform != "linux":
        return False
    with source.open("rb") as content, target.open("wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), FICLONE, content.fileno())
        except OSError:
            return False  # whatever the reason, a plain copy reports it better
    return True

"""Listing of a folder's files in the form that the rules of completeness need."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from prime_train.core.manifest import FILES_MAX
from prime_train.ports import PermanentError
from prime_train.trainers import FileInfo


def files_in(folder: Path) -> tuple[FileInfo, ...]:
    """Return every file below `folder`, sorted by path; links to files count as files. Files that vanish meanwhile are left out.

    Raises PermanentError if there are more files than a manifest holds, or a link to a folder, whose content would silently be left out.
    Raises OSError if a part of the folder cannot be read.
    """
    found = []
    for root, folders, names in os.walk(folder, onerror=_unreadable):
        for name in folders:
            if Path(root, name).is_symlink():
                raise PermanentError(
                    f"{Path(root, name).relative_to(folder.parent)} is a link to a folder, which a checkpoint cannot contain"
                )
        for name in names:
            status = _status(Path(root, name))
            if status is not None and stat.S_ISREG(status.st_mode):
                found.append(FileInfo(Path(root, name).relative_to(folder).as_posix(), status.st_size, status.st_mtime))
        if len(found) > FILES_MAX:
            raise PermanentError(f"{folder.name} has more than {FILES_MAX} files")
    return tuple(sorted(found, key=lambda file: file.path))


def size_of(folder: Path) -> int:
    """Return the bytes of all files in `folder`."""
    return sum(status.st_size for status in _statuses(folder))


def written_s(folder: Path) -> float:
    """Return when a file in `folder` was last written, in seconds since 1970.

    For a folder without files, return its own modification time, and 0 if it does not exist.
    """
    itself = _status(folder)
    return max((status.st_mtime for status in _statuses(folder)), default=itself.st_mtime if itself else 0.0)


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    for root, _, names in os.walk(folder):
        for name in names:
            status = _status(Path(root, name))
            if status is not None:
                yield status


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _unreadable(error: OSError) -> None:
    # os.walk skips what it cannot read, but a checkpoint with a part left out is not a checkpoint.
    if not isinstance(error, FileNotFoundError):
        raise error

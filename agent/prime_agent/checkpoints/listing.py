"""What lies in a folder, as the rules of completeness want to see it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from prime_train.core.manifest import FILES_MAX
from prime_train.ports import PermanentError
from prime_train.trainers import FileSeen


def files_in(folder: Path) -> tuple[FileSeen, ...]:
    """Every file below `folder`, sorted by path; links to files count as files. What vanishes meanwhile is left out.

    PermanentError: more files than a manifest holds, or a link to a folder, whose content would silently be left out. OSError: a part of
    it cannot be read.
    """
    found = []
    for root, folders, names in os.walk(folder, onerror=_unreadable):
        for name in folders:
            if Path(root, name).is_symlink():
                raise PermanentError(f"{Path(root, name).relative_to(folder.parent)} is a link to a folder; it cannot be kept")
        for name in names:
            status = _status(Path(root, name))
            if status is not None and stat.S_ISREG(status.st_mode):
                found.append(FileSeen(Path(root, name).relative_to(folder).as_posix(), status.st_size, status.st_mtime))
        if len(found) > FILES_MAX:
            raise PermanentError(f"{folder.name} has more than {FILES_MAX} files")
    return tuple(sorted(found, key=lambda file: file.path))


def size_of(folder: Path) -> int:
    """Bytes of all files in `folder`."""
    return sum(status.st_size for status in _statuses(folder))


def written_s(folder: Path) -> float:
    """When a file in `folder` was last written, in seconds since 1970; of an empty folder when it was made, and 0 when it is gone."""
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
    # os.walk leaves out what it cannot read, and a checkpoint without a part of it is none.
    if not isinstance(error, FileNotFoundError):
        raise error

"""Listing of a folder's files in the form that the rules of completeness need."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prime_train.checkpoints.manifest import FILES_MAX
from prime_train.errors import PermanentError
from prime_train.trainers.of_spec import FileInfo


def files_in(folder: Path, roots: Sequence[Path] = ()) -> tuple[FileInfo, ...]:
    """Return every file below `folder`, sorted by path; links to files count as files, and links to folders
    that stay inside one of `roots` as folders. Files that vanish meanwhile are left out.

    Raises PermanentError if there are more files than a manifest holds, or for a link to a folder elsewhere,
    whose content would silently be left out. Raises OSError if a part of the folder cannot be read.
    """
    found: list[FileInfo] = []
    for root, names in _walk(folder, roots, above=folder.parent):
        for name in names:
            status = _status(Path(root, name))
            if status is not None and stat.S_ISREG(status.st_mode):
                found.append(
                    FileInfo(Path(root, name).relative_to(folder).as_posix(), status.st_size, status.st_mtime)
                )
        if len(found) > FILES_MAX:
            raise PermanentError(f"{folder.name} has more than {FILES_MAX} files")
    return tuple(sorted(found, key=lambda file: file.path))


def stays_inside(link: Path, roots: Sequence[Path]) -> bool:
    """Return whether what the link points to, if it exists, is inside one of these folders, and does not
    contain the link itself.
    """
    real = Path(os.path.realpath(link))
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots) and not Path(
        os.path.realpath(link.parent)
    ).is_relative_to(real)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in `folder`."""
    return sum(status.st_size for status in _statuses(folder))


def written_s(folder: Path) -> float:
    """Return when a file in `folder` was last written, in seconds since 1970.

    For a folder without files, return its own modification time, and 0 if it does not exist. For a file,
    return that of the file.
    """
    itself = _status(folder)
    return max((status.st_mtime for status in _statuses(folder)), default=itself.st_mtime if itself else 0.0)


def _walk(folder: Path, roots: Sequence[Path], *, above: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder below `folder`, itself included, with the names of its files. `above`: what paths in
    errors are relative to.
    """
    for root, folders, names in os.walk(folder, onerror=_unreadable):
        for name in folders:
            link = Path(root, name)
            if not link.is_symlink():
                continue
            shown = link.relative_to(above)
            if not roots:
                raise PermanentError(f"{shown} is a link to a folder, which a checkpoint cannot contain")
            if not stays_inside(link, roots):
                raise PermanentError(f"{shown} is a link to a folder outside the machine's folder {roots[0]}")
            yield from _walk(link, roots, above=above)
        yield root, names


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    for root, _, names in os.walk(folder):
        for name in names:
            # A link to itself has neither size nor time; `files_in` refuses it.
            with suppress(OSError):
                yield Path(root, name).stat()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _unreadable(error: OSError) -> None:
    # os.walk skips what it cannot read, but a checkpoint with a part left out is not a checkpoint.
    if not isinstance(error, FileNotFoundError):
        raise error

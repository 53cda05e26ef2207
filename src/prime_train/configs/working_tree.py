"""Where the working tree of a config may be on this machine, and which files it has there."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from prime_train.configs.code_folder import leads_out

UP_MAX = 4
NAMES_MAX = 1000
"""Maximum number of file names listed from one folder."""


@dataclass(frozen=True)
class WorkingTree:
    """The folders that may be the working tree of the config `file`: `folder` relative to the current folder,
    as for a launch, or to one of the folders above the config.
    """

    file: str
    folder: str

    @property
    def places(self) -> tuple[Path, ...]:
        return Path(self.folder), *(above / self.folder for above in Path(self.file).parents[:UP_MAX])

    @property
    def exists(self) -> bool:
        return any(map(is_folder, self.places))

    def find(self, name: str, *, inside: bool = False) -> Path | None:
        """Return the path of the file in the first place that has it. Absolute names and names with ".." are
        not followed; with `inside`, neither are links that lead out of the tree.
        """
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            return None
        places = (place for place in self.places if not (inside and leads_out(place / name, place)))
        return next((place / name for place in places if is_file(place / name)), None)

    def names_in(self, folder: str) -> Iterator[str]:
        """Yield the files in a folder of the tree, at most `NAMES_MAX`, as paths from the tree."""
        there = next((place / folder for place in self.places if is_folder(place / folder)), None)
        entries = islice(os.scandir(there), NAMES_MAX) if there is not None else ()
        yield from (str(PurePosixPath(folder, entry.name)) for entry in entries)


def is_file(path: Path) -> bool:
    return stat.S_ISREG(mode(path))


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(mode(path))


def mode(path: Path) -> int:
    """Return the mode bits of the path, or 0 if nothing exists there or nothing can (the name is too long,
    for example).
    """
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0

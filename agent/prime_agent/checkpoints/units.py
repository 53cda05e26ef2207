"""The checkpoints in a trainer's folder: each is a folder, a file, or several files with one number.

Names decide what belongs together (`spec/checkpoint_names.py`). Entries with the name of a checkpoint that
cannot be one are refused with a reason, which people are told.
"""

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from prime_agent.checkpoints.listing import files_in, size_of, stays_inside, written_s
from prime_train.spec.checkpoint_names import CheckpointNames, has_wildcards, is_place
from prime_train.trainers.of_spec import FileInfo

ENTRIES_MAX = 100_000
FOLDERS_MAX = 1000
"""Number of folders that the wildcards of `checkpoints.folder` may match."""


@dataclass(frozen=True)
class Refused:
    """An entry of the folder of checkpoints that has the name of one and is not uploaded, with the reason as
    the end of a sentence that begins with its name.
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Unit:
    """A checkpoint on this machine. `folder`: the folder of checkpoints that it is in; `name`: the name of
    its folder, or of its first file; `members`: the names of its files in `folder`, with the folders among
    them, empty if it is a folder; `missing`: the patterns of parts that are not there yet.
    """

    step: int
    folder: Path
    name: str
    members: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()

    @property
    def path(self) -> Path:
        """The path of the folder, or of the first file."""
        return self.folder / self.name

    @property
    def root(self) -> Path:
        """The folder that the paths of its files are relative to."""
        return self.folder if self.members else self.path

    def files(self) -> tuple[FileInfo, ...]:
        """Return its files, as `files_in` does, and with the same exceptions."""
        if not self.members:
            return files_in(self.path, self.roots)
        found: list[FileInfo] = []
        for name in self.members:
            path = self.folder / name
            if path.is_dir():
                found += [
                    FileInfo(f"{name}/{file.path}", file.size, file.mtime_s)
                    for file in files_in(path, self.roots)
                ]
                continue
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                found.append(FileInfo(name, status.st_size, status.st_mtime))
        return tuple(sorted(found, key=lambda file: file.path))

    @property
    def size(self) -> int:
        """The bytes of its files; files that vanish meanwhile are left out."""
        return sum(size_of(path) if path.is_dir() else _size(path) for path in self._paths)

    @property
    def written_s(self) -> float:
        """When one of its files was last written, in seconds since 1970."""
        return max(written_s(path) for path in self._paths)

    @property
    def _paths(self) -> list[Path]:
        return [self.folder / name for name in self.members] or [self.path]


class Units:
    """The checkpoints of one attempt. `work`: the working tree; `accepts_files`: whether files count;
    `reached`: the step that had been reached at a time, for a checkpoint that is overwritten.
    """

    def __init__(
        self,
        names: CheckpointNames,
        work: Path,
        *,
        accepts_files: bool = True,
        reached: Callable[[float], int] = lambda at_s: 0,
    ) -> None:
        self.names, self._work, self._accepts_files, self._reached = names, work, accepts_files, reached
        self._roots = (work.parent,)

    def folders(self) -> list[Path]:
        """Return the folders of checkpoints that exist."""
        folder = self.names.folder
        if not has_wildcards(folder):
            return [self._work / folder]
        found = (
            path
            for path in self._work.glob(folder)
            if is_place(folder, path.relative_to(self._work).as_posix())
        )
        return sorted(
            path for path in islice(found, FOLDERS_MAX) if path.is_dir() and stays_inside(path, self._roots)
        )

    def place(self, unit: Unit) -> str:
        """Return the folder of checkpoints that the unit is in, relative to the working tree, if the config
        names it with wildcards.
        """
        return unit.folder.relative_to(self._work).as_posix() if has_wildcards(self.names.folder) else ""

    def found(self) -> tuple[list[Unit], list[Refused]]:
        """Return the checkpoints, complete or not, and what was refused. Of several folders with a checkpoint
        of one step, the one that was written last counts.
        """
        units: dict[int, Unit] = {}
        refused: list[Refused] = []
        for folder in self.folders():
            here, not_here = self._found_in(folder)
            refused += not_here
            for unit in here:
                other = units.get(unit.step)
                if other is None or other.written_s <= unit.written_s:
                    units[unit.step] = unit
        return list(units.values()), refused

    def _found_in(self, folder: Path) -> tuple[list[Unit], list[Refused]]:
        refused: list[Refused] = []
        names: list[str] = []
        by_step: dict[int | None, list[str]] = {}
        for entry in _entries(folder):
            is_main = self.names.is_main(entry.name)
            if not is_main and not (self.names.also and self.names.is_part(entry.name)):
                continue
            why = self._why_refused(entry)
            if why is not None:
                refused += [Refused(entry.name, why)] if why else []
                continue
            names.append(entry.name)
            if is_main:
                by_step.setdefault(self.names.step_of(entry.name), []).append(entry.name)
        units = []
        for step, mains in by_step.items():
            if len(mains) > 1:
                joined = ", ".join(sorted(mains)[:2])
                reason = (
                    f"and another are checkpoints of the same number ({joined}); "
                    "make checkpoints.pattern match one of them"
                )
                refused += [Refused(name, reason) for name in sorted(mains)]
                continue
            units.append(self._unit(folder, mains[0], names, step))
        return units, refused

    def _why_refused(self, entry: os.DirEntry[str]) -> str | None:
        """Return why the entry is no part of a checkpoint; empty if that is not worth telling; None if it is
        one.
        """
        try:
            if entry.is_symlink() and entry.is_dir() and not stays_inside(Path(entry.path), self._roots):
                return f"is a link to a folder outside the machine's folder {self._roots[0]}"
            return None if entry.is_dir() or (self._accepts_files and entry.is_file()) else ""
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"

    def _unit(self, folder: Path, main: str, names: Sequence[str], step: int | None) -> Unit:
        also = [
            [name for name in names if name != main and self.names.belongs_by(pattern, name, main)]
            for pattern in self.names.also
        ]
        missing = tuple(pattern for pattern, found in zip(self.names.also, also, strict=True) if not found)
        others = sorted({name for found in also for name in found})
        members = () if (folder / main).is_dir() and not self.names.also else (main, *others)
        unit = Unit(step or 0, folder, main, members, missing, self._roots)
        return (
            unit
            if step is not None
            else Unit(self._reached(unit.written_s), folder, main, members, missing, self._roots)
        )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, ENTRIES_MAX))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0

"""A bounded look at what the trainer has written in and near its checkpoint folder, by names, sizes and times
only.
"""

import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from prime_agent.checkpoints.promise import (
    REFUSALS_MAX,
    RefusedEntry,
    Seen,
    Strangers,
    looks_like_checkpoint,
    numbers_in,
)
from prime_train.spec.checkpoint_names import has_wildcards, is_place
from prime_train.text.globs import matches

ENTRIES_MAX = 5000
"""Number of entries of one folder that are looked at."""
FOLDERS_MAX = 200
DEPTH_MAX = 4
"""Number of folders, and of levels below the working tree, in which checkpoints are looked for."""
LOOK_S = 2.0
"""Seconds between two looks."""
SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "wandb", "mlruns", "lost+found"})


@dataclass(frozen=True)
class FolderEntry:
    """An entry of a folder, as its own directory lists it: a link is not followed."""

    name: str
    mode: int
    size: int
    mtime_s: float

    @property
    def kind(self) -> str:
        if stat.S_ISLNK(self.mode):
            return "a link"
        return (
            "a folder"
            if stat.S_ISDIR(self.mode)
            else "a file"
            if stat.S_ISREG(self.mode)
            else "neither a file nor a folder"
        )


class Surroundings:
    """The look of one attempt. `work` is the working tree, `folder` the checkpoint folder in it, perhaps with
    wildcards. `step_of` returns the step of a checkpoint's name, or None for other names. Files that one of
    the patterns `outputs` chooses are none, because they are uploaded.
    """

    def __init__(
        self, work: Path, folder: str, *, step_of: Callable[[str], int | None], outputs: Sequence[str]
    ) -> None:
        self._work, self._folder = work, PurePosixPath(folder)
        self._places: tuple[PurePosixPath, ...] = (self._folder,)
        self._step_of, self._outputs = step_of, outputs
        self._present: dict[str, float] = {}
        self._seen: Seen | None = None
        self._seen_s = 0.0

    def disregard_present(self) -> None:
        """Leave out what exists now unless it is written again: this attempt did not write it. Call this
        before the trainer starts.
        """
        self._present = {}
        self._places = self._found_places()
        for folder in self._folders():
            self._present |= {
                str(folder / entry.name): entry.mtime_s for entry in _entries(self._work / folder)
            }

    def look(
        self,
        units: Collection[str],
        refused: Sequence[RefusedEntry],
        *,
        above: int,
        deep: bool,
        at_once: bool = False,
    ) -> Seen:
        """Return what lies there. `units`: the names of the checkpoints that the uploader knows of;
        `refused`: those of them that are newer than the newest complete one, of step `above`, and why they
        are none. `deep`: look in other folders, too. `at_once`: even if the last look was a moment ago. Never
        raises OSError.
        """
        if self._seen is not None and not at_once and time.monotonic() - self._seen_s < LOOK_S:
            return self._seen
        self._seen, self._seen_s = self._look(units, refused, above=above, deep=deep), time.monotonic()
        return self._seen

    def _look(
        self, units: Collection[str], refused: Sequence[RefusedEntry], *, above: int, deep: bool
    ) -> Seen:
        self._places = self._found_places()
        odd, others = list(refused), dict[PurePosixPath, list[FolderEntry]]()
        for place in self._places:
            for entry in self._new(place):
                step = self._step_of(entry.name)
                if step is None and entry.name not in units and not self._is_output(place / entry.name):
                    others.setdefault(place, []).append(entry)
                elif step is not None and step > above and entry.name not in units:
                    # The name matches, and the uploader did not take it for a checkpoint.
                    odd.append(RefusedEntry(entry.name, step, f"is {entry.kind}, and no folder"))
        # Of the folders that the wildcards match, the one that was written last is that of the present
        # launch.
        last = max(
            others, key=lambda place: max(entry.mtime_s for entry in others[place]), default=self._folder
        )
        unmatched = others.get(last, [])
        every = sorted(odd, key=lambda one: one.step, reverse=True)
        return Seen(
            refused=tuple(every[:REFUSALS_MAX]),
            refused_count=len({one.step for one in every}),
            unmatched=_strangers(last, unmatched, is_root=last == PurePosixPath()),
            elsewhere=self._elsewhere() if deep else None,
            is_cut=len(unmatched) >= ENTRIES_MAX,
        )

    def _found_places(self) -> tuple[PurePosixPath, ...]:
        """Return the folders that the checkpoint folder stands for; one without wildcards stands for itself,
        whether it exists or not.
        """
        folder = str(self._folder)
        if not has_wildcards(folder):
            return (self._folder,)
        try:
            found = [
                PurePosixPath(path.relative_to(self._work))
                for path in islice(self._work.glob(folder), FOLDERS_MAX)
                if path.is_dir()
            ]
        except OSError:
            return self._places  # a folder vanished meanwhile
        return tuple(sorted(place for place in found if is_place(folder, str(place))))

    def _elsewhere(self) -> Strangers | None:
        """Return the other folder with the most entries that look like checkpoints of this attempt; None if
        there is none.
        """
        best: Strangers | None = None
        for folder in self._folders():
            if folder in self._places or self._is_in_unit(folder):
                continue
            found = [entry for entry in self._new(folder) if self._is_suspect(folder / entry.name)]
            strangers = _strangers(folder, found)
            if strangers is not None and (best is None or strangers.numbered > best.numbered):
                best = strangers
        return best

    def _is_in_unit(self, folder: PurePosixPath) -> bool:
        """Return whether the folder is a checkpoint of the run, or is inside one."""
        below = (
            folder.relative_to(place)
            for place in self._places
            if folder != place and folder.is_relative_to(place)
        )
        return any(self._step_of(path.parts[0]) is not None for path in below)

    def _is_suspect(self, path: PurePosixPath) -> bool:
        is_it = self._step_of(path.name) is not None or looks_like_checkpoint(path.name)
        return (
            is_it
            and not any(place.is_relative_to(path) for place in self._places)
            and not self._is_output(path)
        )

    def _is_output(self, path: PurePosixPath) -> bool:
        return any(matches(pattern, str(path)) for pattern in self._outputs)

    def _new(self, folder: PurePosixPath) -> list[FolderEntry]:
        return [
            entry
            for entry in _entries(self._work / folder)
            if self._present.get(str(folder / entry.name)) != entry.mtime_s
        ]

    def _folders(self) -> list[PurePosixPath]:
        """Return the checkpoint folders, and the folders of the working tree, the upper levels first."""
        found, level = list(self._places), [PurePosixPath()]
        for _ in range(DEPTH_MAX):
            below: list[PurePosixPath] = []
            for folder in level[: FOLDERS_MAX - len(found)]:
                found += [folder] if folder not in found else []
                names = (entry.name for entry in _entries(self._work / folder) if stat.S_ISDIR(entry.mode))
                below += [folder / name for name in names if name not in SKIPPED]
            level = below
        return found


def _strangers(
    folder: PurePosixPath, entries: Sequence[FolderEntry], *, is_root: bool = False
) -> Strangers | None:
    """Return the summary of these entries; None if there are none. `is_root`: the folder is the working tree,
    where many other files appear.
    """
    suspects = [entry for entry in entries if looks_like_checkpoint(entry.name)]
    counted = suspects if is_root else entries
    if not counted:
        return None
    newest = max(suspects or entries, key=lambda entry: (entry.mtime_s, entry.name))
    numbers = numbers_in([entry.name for entry in suspects])
    return Strangers(str(folder), len(counted), newest.name, len(numbers), max(numbers, default=0))


def _entries(folder: Path) -> list[FolderEntry]:
    """Return the entries whose names do not begin with a dot; none if the folder cannot be read."""
    try:
        with os.scandir(folder) as found:
            return list(islice(_read(found), ENTRIES_MAX))
    except OSError:
        return []


def _read(found: "Iterator[os.DirEntry[str]]") -> Iterator[FolderEntry]:
    for entry in found:
        if entry.name.startswith("."):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield FolderEntry(entry.name, status.st_mode, status.st_size, status.st_mtime)

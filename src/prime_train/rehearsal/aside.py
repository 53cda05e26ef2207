"""Copies of complete saves, made while the script runs on."""

import itertools
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from prime_train.rehearsal.process import Rehearsed
from prime_train.rehearsal.recording import Recording
from prime_train.rehearsal.restored import restore
from prime_train.rehearsal.saves import Save, SavesSeen
from prime_train.rehearsal.seen_saves import saves_like
from prime_train.rehearsal.written_files import history_of
from prime_train.text.formatting import size


class Aside:
    """Copies of the newest complete save and the one before, made while the script runs on: it may write over
    them or delete them.
    """

    def __init__(self, folder: Path, saves: SavesSeen) -> None:
        self._folder, self._saves = folder, saves
        self.count = 0
        self.lacks = ""
        self.kept: list[tuple[Save, Path]] = []

    def keep_last(self, process: Rehearsed) -> None:
        """Copy the last saves of a process that has ended, as far as they are still there."""
        if self._saves.is_in_place:
            self.keep(process)
            return
        kept = {save.path for save, _ in self.kept}
        for save in saves_like(self._saves, process.recording)[-2:]:
            if save.path not in kept and save.deleted_s is None and self._has_room(save):
                self.count += 1
                target = self._folder / f"save-{self.count}"
                with suppress(OSError):
                    restore(save, self._saves, process.place.tree, target)
                    self.kept.append((save, target))
        self.kept.sort(key=lambda row: row[0].closed_s)

    def _has_room(self, save: Save) -> bool:
        """Return whether the disk has room for a copy of this save, a tree with it, and what that writes."""
        place = next(one for one in (self._folder, *self._folder.parents) if one.exists())
        free = shutil.disk_usage(place).free
        self.lacks = (
            ""
            if free > COPIES * save.size + FREE_BYTES_MIN
            else (
                f"{size(free)} are free in {place}, too little for copies of a checkpoint of {size(save.size)}: "
                "set TMPDIR to a folder on a larger disk"
            )
        )
        return not self.lacks

    def keep(self, process: Rehearsed) -> None:
        """Copy the newest save if it is complete and was not kept yet."""
        found = saves_like(self._saves, process.recording)
        if not found or process.now_s() - found[-1].closed_s < _quiet_s(found):
            return
        newest = found[-1]
        if self.kept and self.kept[-1][0].closed_s >= newest.closed_s:
            return
        if not self._has_room(newest):
            return
        self.count += 1
        target = self._folder / f"save-{self.count}"
        try:
            restore(newest, self._saves, process.place.tree, target)
        except OSError:  # it was deleted meanwhile: the next one will be kept
            shutil.rmtree(target, ignore_errors=True)
            return
        after = saves_like(self._saves, process.recording)
        # What has no number was written over by any later save.
        after = after[-1:] if self._saves.is_in_place else after
        if newest not in after or _is_open(newest, process.recording):
            shutil.rmtree(target, ignore_errors=True)
            return
        self.kept.append((newest, target))
        for _, old in self.kept[:-2]:
            shutil.rmtree(old, ignore_errors=True)


COPIES = 4
FREE_BYTES_MIN = 2**30
QUIET_S = 0.15
"""Seconds without a write after which a save is copied; fewer if the script saves more often."""


def _quiet_s(saves: Sequence[Save]) -> float:
    apart = [b.closed_s - a.closed_s for a, b in itertools.pairwise(saves[-5:])]
    return min(QUIET_S, *(one / 3 for one in apart)) if apart else QUIET_S


def _is_open(save: Save, recording: Recording) -> bool:
    return not history_of(recording).open.isdisjoint(one.path for one in save.members)

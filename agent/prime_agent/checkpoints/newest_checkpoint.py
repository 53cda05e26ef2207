"""The newest complete checkpoint, kept by hard links from the moment it is found.

Uploads take time, and fail while the bucket is unavailable. Meanwhile the trainer may delete the checkpoint,
to make room or because it has ended: hard links keep its content, and cost only its disk space. At most one
checkpoint is held; a newer one replaces it. If the trainer overwrites files in place, links are no
protection, and if links are impossible, nothing is held, because copies would cost too much. Of a checkpoint
of a fixed name, which each save overwrites, a copy that was made before is held instead.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from prime_agent.checkpoints.integrity import violation_of
from prime_agent.checkpoints.listing import files_in
from prime_agent.checkpoints.staging import Vanished, clear, set_aside
from prime_agent.checkpoints.units import Unit
from prime_train.errors import PermanentError, TemporaryError
from prime_train.trainers.of_spec import FileInfo

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalCheckpoint:
    """A held checkpoint. `path` ends in the checkpoint's own name; `files` are the files found in it."""

    step: int
    path: Path
    files: tuple[FileInfo, ...]


class Waiting:
    """Holder of the newest complete checkpoint, shared by the thread that scans the checkpoint folder and the
    one that uploads.

    `folder` is on the trainer's file system, outside its working tree.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stored: LocalCheckpoint | None = None

    def newest(self, *, above: int) -> LocalCheckpoint | None:
        """Return the held checkpoint if its step is above `above` and it was not written to; otherwise
        release it and return None.
        """
        with self._lock:
            stored = self._stored
            if stored is not None and (stored.step <= above or not _is_as_it_was(stored)):
                clear(self._folder)
                self._stored = None
            return self._stored

    def adopt(self, step: int, copy: Path) -> LocalCheckpoint:
        """Hold the folder `copy`, on the same file system, which nobody else uses. Raises OSError."""
        with self._lock:
            folder = self._folder / str(step)
            clear(folder)
            folder.mkdir(parents=True)
            copy.rename(folder / copy.name)
            if self._stored is not None and self._stored.step != step:
                clear(self._stored.path.parent)
            self._stored = LocalCheckpoint(step, folder / copy.name, files_in(folder / copy.name))
            return self._stored

    def hold(self, step: int, unit: Unit) -> LocalCheckpoint | None:
        """Hold the complete checkpoint `unit` and return it, or None if that is impossible.

        If the held checkpoint of the same step has only lost files in its place, the trainer is deleting it,
        so the links stay as they are.
        """
        with self._lock:
            return self._hold(step, unit)

    def _hold(self, step: int, unit: Unit) -> LocalCheckpoint | None:
        stored = self._stored
        try:
            if stored is not None and stored.step == step and set(unit.files()) <= set(stored.files):
                return stored
            place = self._folder / f"{step}.new" / unit.name
            files = set_aside(unit.root, place, copy=False, only_links=True, listed=unit.files)
            folder = place.parent.with_suffix("")
            clear(folder)
            place.parent.rename(folder)
        except (Vanished, TemporaryError, PermanentError, OSError) as error:
            _log.debug("step %d is not kept on disk: %s", step, error)
            clear(self._folder / f"{step}.new")
            return stored if stored is not None and stored.step == step else None
        if stored is not None and stored.step != step:
            clear(stored.path.parent)
        self._stored = LocalCheckpoint(step, folder / unit.name, files)
        return self._stored


def _is_as_it_was(stored: LocalCheckpoint) -> bool:
    """Return whether the files are unchanged: a trainer that writes into a file also changes the hard link to
    it.
    """
    try:
        return files_in(stored.path) == stored.files
    except (PermanentError, OSError):
        return False


@dataclass(frozen=True)
class Draft:
    """A copy of a version, in the folder `path`, that was written at `written_s`."""

    unit: Unit
    path: Path
    written_s: float


class VersionCopies:
    """Copies of the versions of a checkpoint of a fixed name, which the trainer overwrites at each save; at
    most one at a time.

    A link would change with the next save, so a version is copied as soon as it is complete, and dropped if
    it changed meanwhile. `folder` is outside the working tree.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._draft: Draft | None = None
        self.taken_s: float | None = None
        """When the newest version that was copied had been written."""

    @property
    def draft(self) -> Draft | None:
        return self._draft

    def take(self, unit: Unit) -> None:
        """Copy the checkpoint. Raises Vanished if it changes meanwhile, TemporaryError if there is no space,
        PermanentError and OSError."""
        written_s, place = unit.written_s, self._folder / unit.name
        try:
            files = set_aside(unit.root, place, copy=True, listed=unit.files)
            violation = violation_of(place, files)
            if violation or unit.written_s != written_s:
                raise Vanished(f"{unit.name} changed while it was copied")
        except BaseException:
            clear(self._folder)
            raise
        self._draft, self.taken_s = Draft(unit, place, written_s), written_s

    def drop(self) -> None:
        """Forget the copy, and delete it unless it was moved away."""
        clear(self._folder)
        self._draft = None

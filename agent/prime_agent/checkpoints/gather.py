"""Gathers the files of a checkpoint in a folder of its own, for trainers that do not write one.

Links share the content of a file that is still being written, so a gathered folder grows with the trainer's
files, and the usual rules say when it is complete. A state that the trainer overwrites in place is copied,
and the copy is dropped if the state changed meanwhile.
"""

import logging
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from prime_agent.checkpoints.listing import files_in
from prime_agent.checkpoints.staging import clear, take
from prime_train.errors import PermanentError, TemporaryError
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import FileInfo, Gathering, Scattered, Trainer

_READ_BYTES_MAX = 2**20

_log = logging.getLogger(__name__)


class Gatherer:
    """The gathering of one attempt. `work` is the working tree. For trainers that write a folder for each
    step it does nothing.
    """

    def __init__(self, trainer: Trainer, spec: RunSpec, work: Path) -> None:
        self._gathering: Gathering | None = trainer.gathering(spec)
        self._trainer, self._spec = trainer, spec
        self._folder = work / CheckpointNames.of(spec).folder
        self._source = work / (self._gathering.folder if self._gathering else ".")
        self._disregarded: frozenset[FileInfo] = frozenset()
        self._mentioned: set[str] = set()

    def disregard_present(self) -> None:
        """Exclude the files that exist now, unless they are written again: this attempt did not write
        them.
        """
        if self._gathering is not None:
            self._disregarded = frozenset(_listed(self._source, self._gathering))

    def gather(self, *, above: int, resumed_step: int = 0) -> None:
        """Gather the checkpoints of steps above `above`. What cannot be gathered now is tried again by the
        next call. `resumed_step` is the step that the trainer resumed from, which is added to its steps if it
        counts them anew.
        """
        if self._gathering is None:
            return
        after = resumed_step if self._trainer.counts_anew(self._spec) else 0
        for one in self._found(self._gathering):
            if after + one.step > above:
                self._gather(self._gathering, one, after + one.step)

    def drop(self, *, below: int) -> None:
        """Delete the folders that were gathered for steps below `below`, to free the disk."""
        if self._gathering is None or not self._folder.is_dir():
            return
        for path in list(self._folder.iterdir()):
            step = self._trainer.step_of(self._spec, path.name)
            if step is not None and step < below and path.is_dir() and not path.is_symlink():
                clear(path)

    def _found(self, gathering: Gathering) -> list[Scattered]:
        files = _listed(self._source, gathering)
        present = {file.path for file in files if file in self._disregarded}
        found = gathering.checkpoints(files, self._read)
        return [one for one in found if not set(one.files.values()) <= present]

    def _read(self, path: str) -> bytes:
        with (self._source / path).open("rb") as file:
            return file.read(_READ_BYTES_MAX)

    def _gather(self, gathering: Gathering, one: Scattered, step: int) -> None:
        folder = self._folder / self._trainer.folder_of(self._spec, step)
        draft = folder.with_name(f".gathering-{step}")
        try:
            before = _seen(self._source, one.files)
            if folder.is_dir() and set(files_in(folder)) == before:
                return
            clear(draft)
            for own, path in one.files.items():
                (draft / own).parent.mkdir(parents=True, exist_ok=True)
                take(
                    self._source / path,
                    draft / own,
                    (self._source / path).stat().st_size,
                    copy=gathering.in_place,
                )
            if gathering.in_place and (
                one not in self._found(gathering) or _seen(self._source, one.files) != before
            ):
                clear(draft)
                return
            clear(folder)
            draft.rename(folder)
        except (OSError, TemporaryError, PermanentError) as error:
            clear(draft)
            message = f"step {step} cannot be gathered: {error}"
            if message not in self._mentioned:
                self._mentioned.add(message)
                _log.warning("%s", message)


def _seen(source: Path, files: Mapping[str, str]) -> set[FileInfo]:
    """Return the files as they should be in the checkpoint's own folder. Raises OSError."""
    statuses = {own: (source / path).stat() for own, path in files.items()}
    return {FileInfo(own, status.st_size, status.st_mtime) for own, status in statuses.items()}


def _listed(source: Path, gathering: Gathering) -> Sequence[FileInfo]:
    """Return the files that the trainer writes there. Files that vanish meanwhile are left out."""
    found: list[FileInfo] = []
    folders = [PurePosixPath()]
    while folders:
        at = folders.pop()
        try:
            entries = sorted(os.scandir(source / at), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            path = at / entry.name
            if entry.is_dir(follow_symlinks=False):
                folders += [path] if gathering.is_opened(path) else []
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.append(FileInfo(str(path), status.st_size, status.st_mtime))
    return found

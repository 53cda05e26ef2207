"""The newest complete checkpoint, held by hard links from the moment it is seen.

Uploads take their time, and fail while the bucket is away. Meanwhile a trainer may remove the checkpoint, to make room or because it has
ended: the links keep its content, at no cost but the room that it takes. There is one at most; a newer one takes its place. Where the
trainer writes into old files again links are no protection, and where there can be none, nothing is held: copies would cost too much.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from prime_agent.checkpoints.listing import files_in
from prime_agent.checkpoints.stage import Vanished, clear, set_aside
from prime_train.ports import PermanentError, TemporaryError
from prime_train.trainers import FileSeen

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalCheckpoint:
    """`path` has the checkpoint's own name; `files` are what was seen in it."""

    step: int
    path: Path
    files: tuple[FileSeen, ...]


class Waiting:
    """Used by the thread that looks into the checkpoint folder and the one that uploads. `folder`: on the trainer's file system, outside of
    its working tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._held: LocalCheckpoint | None = None

    def newest(self, *, above: int) -> LocalCheckpoint | None:
        """What is held, if its step is higher and nobody has written to it; else it is let go."""
        with self._lock:
            held = self._held
            if held is not None and (held.step <= above or not _is_as_it_was(held)):
                clear(self._folder)
                self._held = None
            return self._held

    def hold(self, step: int, path: Path) -> LocalCheckpoint | None:
        """The complete checkpoint at `path`, from now on held; None where that cannot be done. One that has only lost files since it was
        first held is being removed: it stays as it was."""
        with self._lock:
            return self._hold(step, path)

    def _hold(self, step: int, path: Path) -> LocalCheckpoint | None:
        held = self._held
        try:
            if held is not None and held.step == step and set(files_in(path)) <= set(held.files):
                return held
            place = self._folder / f"{step}.new" / path.name
            files = set_aside(path, place, copy=False, only_links=True)
            kept = place.parent.with_suffix("")
            clear(kept)
            place.parent.rename(kept)
        except (Vanished, TemporaryError, PermanentError, OSError) as error:
            _log.debug("step %d is not held: %s", step, error)
            clear(self._folder / f"{step}.new")
            return held if held is not None and held.step == step else None
        if held is not None and held.step != step:
            clear(held.path.parent)
        self._held = LocalCheckpoint(step, kept / path.name, files)
        return self._held


def _is_as_it_was(held: LocalCheckpoint) -> bool:
    """A trainer that writes into a file writes into our link of it, too."""
    try:
        return files_in(held.path) == held.files
    except (PermanentError, OSError):
        return False

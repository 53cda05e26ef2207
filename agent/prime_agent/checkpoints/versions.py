"""The versions of a checkpoint of a fixed name, which the trainer overwrites at each save.

A link would change with the next save, so a version is copied as soon as it is complete, and dropped if it changed meanwhile.
"""

from dataclasses import dataclass
from pathlib import Path

from prime_agent.checkpoints.integrity import violation_of
from prime_agent.checkpoints.staging import Vanished, clear, set_aside
from prime_agent.checkpoints.units import Unit


@dataclass(frozen=True)
class Draft:
    """A copy of a version, in the folder `path`, that was written at `written_s`."""

    unit: Unit
    path: Path
    written_s: float


class Versions:
    """The copies of one attempt, at most one at a time. `folder` is outside the working tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._draft: Draft | None = None
        self.taken_s: float | None = None
        """When the newest version that was copied had been written."""

    @property
    def draft(self) -> Draft | None:
        return self._draft

    def take(self, unit: Unit) -> None:
        """Copy the checkpoint. Raises Vanished if it changes meanwhile, TemporaryError if there is no space, PermanentError and OSError."""
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

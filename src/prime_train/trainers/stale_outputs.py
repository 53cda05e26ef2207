"""Outputs of a trainer other than its checkpoints, and how they have to be handled."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol


@dataclass(frozen=True)
class Move:
    """A rename, with both paths relative to the output folder. An existing `target` is older and may be
    deleted.
    """

    source: str
    target: str


class ToMove(Protocol):
    def __call__(self, listing: Collection[str], resume_step: int | None, *, attempt: int) -> Sequence[Move]:
        """Return the renames to make, in order, before the launch of attempt `attempt`.

        `listing` holds the paths of files and folders relative to the output folder. `resume_step` is the
        restored checkpoint; None if nothing was restored.
        """


@dataclass(frozen=True)
class StaleOutputs:
    """Outputs of an earlier launch in `folder`, a path inside the working tree, that the next launch must not
    find.

    `is_opened` returns whether the entries of a folder are listed, given its path relative to `folder`; those
    of `folder` itself always are.
    """

    folder: str
    to_move: ToMove
    is_opened: Callable[[PurePosixPath], bool] = lambda path: False


@dataclass(frozen=True)
class Disposable:
    """Folders directly below `folder`, a path inside the working tree, that a trainer writes and never
    deletes.

    `unneeded` returns which of these names are not needed any more at a step, in the order in which they are
    to be deleted.
    """

    folder: str
    unneeded: Callable[[Collection[str], int], Sequence[str]]

"""What a trainer writes beside its checkpoints, and what has to happen to it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol


@dataclass(frozen=True)
class Move:
    """A rename, both paths relative to the output folder. What lies at `target` already is older, and may be deleted."""

    source: str
    target: str


class ToMove(Protocol):
    def __call__(self, listing: Collection[str], resume_step: int | None, *, attempt: int) -> Sequence[Move]:
        """What to rename, in order, before the launch of attempt `attempt`. `listing`: paths of files and folders relative to the output
        folder; `resume_step`: the checkpoint that was restored, or None."""


@dataclass(frozen=True)
class StaleOutputs:
    """What an earlier launch may have left in `folder`, a path inside the working tree, that the next launch must not find.

    `is_opened`: whether the entries of this folder are listed too, by its path relative to `folder`; the top always is.
    """

    folder: str
    to_move: ToMove
    is_opened: Callable[[PurePosixPath], bool] = lambda path: False


@dataclass(frozen=True)
class Disposable:
    """Folders directly below `folder`, a path inside the working tree, that a trainer writes and never removes.

    `unneeded`: which of these names are not needed any more at this step, in the order in which they are to be deleted.
    """

    folder: str
    unneeded: Callable[[Collection[str], int], Sequence[str]]

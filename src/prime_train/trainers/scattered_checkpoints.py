"""Checkpoints that a trainer does not write into folders of their own: single files, or one state that is
overwritten again and again.

The agent gathers their files in a folder for each step, which then counts as any other checkpoint. Files that
are written once are linked; a state that is overwritten in place is copied, and only while it is complete.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from prime_train.trainers.checkpoint_folders import FileInfo


@dataclass(frozen=True)
class Scattered:
    """A checkpoint among a trainer's files. `files` maps the path of each file in the checkpoint's own folder
    to the trainer's path of it, relative to the folder of the `Gathering`.
    """

    step: int
    files: Mapping[str, str]


@dataclass(frozen=True)
class Gathering:
    """Where a trainer writes such checkpoints: `folder` is a path inside the working tree."""

    folder: str
    checkpoints: Callable[[Sequence[FileInfo], Callable[[str], bytes]], Iterable[Scattered]]
    """Return the checkpoints among these files. The second argument reads a small file; it raises OSError.
    With `in_place`, only complete ones may be returned, because a copy of part of a state would look like a
    checkpoint.
    """
    is_opened: Callable[[PurePosixPath], bool] = lambda path: False
    """Return whether the files of a folder are listed, given its path relative to `folder`; those of `folder`
    itself always are.
    """
    in_place: bool = False
    """Whether the trainer writes into the same files again."""

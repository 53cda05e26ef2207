"""What was seen of a process that trains: changes of files and lines of output, each with its time.

Times are seconds since the process was started. Paths are relative to its working tree.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Change(StrEnum):
    BEGUN = "begun"
    """A file was created, or a file that was closed is written to again."""
    CLOSED = "closed"
    """A file that was open for writing was closed."""
    MOVED = "moved"
    """A file or folder has another name; `path` is the new one."""
    LINKED = "linked"
    """A symbolic link, or a further hard link, was made."""
    DELETED = "deleted"


@dataclass(frozen=True)
class FileChange:
    """A change of a file. `number`: the order of all changes. `digest`: of its content, for a closed file.
    `text`: its content, if it is short text. `came_from`: its name before it was moved; for a link what it
    names. `is_open`: no program was seen to close it, as where no kernel events are to be had.
    """

    number: int
    at_s: float
    change: Change
    path: str
    inode: int = 0
    size: int = 0
    digest: str = ""
    text: str | None = None
    came_from: str = ""
    is_folder: bool = False


@dataclass(frozen=True)
class OutputLine:
    """A line of the process's output. `number`: its order among the lines of all streams. `stream`: stdout,
    stderr, or the path of a file of text that grows. `is_redrawn`: it ended with a carriage return, as
    progress bars do.
    """

    number: int
    at_s: float
    stream: str
    text: str
    is_redrawn: bool = False


@dataclass
class Recording:
    """All of one process, which other threads may still add to. `ended_s` and `code`: when it ended and how,
    if it has. `asked_s`: when it was asked to end by SIGTERM. `killed_s`: when it was killed; files that were
    closed by that are not complete.
    """

    changes: list[FileChange] = field(default_factory=list)
    lines: list[OutputLine] = field(default_factory=list)
    asked_s: float | None = None
    killed_s: float | None = None
    ended_s: float | None = None
    code: int | None = None
    peak_bytes: int = 0

    def until(self, at_s: float) -> "Recording":
        """Return what had been seen up to this time."""
        return Recording(
            [one for one in self.changes if one.at_s <= at_s], [one for one in self.lines if one.at_s <= at_s]
        )

    def written(self) -> Iterator[FileChange]:
        """Yield what may have completed a file: it was closed, or moved to its name."""
        return (one for one in self.changes if one.change in (Change.CLOSED, Change.MOVED))

    def lines_of(self, stream: str) -> Sequence[OutputLine]:
        return [line for line in self.lines if line.stream == stream]

    @property
    def seen_s(self) -> float:
        """The time of the last that was seen."""
        last = [*(one.at_s for one in self.changes[-1:]), *(one.at_s for one in self.lines[-1:])]
        return max(last, default=0.0) if self.ended_s is None else self.ended_s


def is_even(numbers: Sequence[int]) -> bool:
    """Return whether the numbers rise by one and the same distance."""
    return len(numbers) > 1 and len({b - a for a, b in itertools.pairwise(numbers)}) == 1


def median(values: Sequence[float]) -> float:
    """Return the middle one of the values, 0 if there are none."""
    ordered = sorted(value for value in values if math.isfinite(value))
    return ordered[len(ordered) // 2] if ordered else 0.0

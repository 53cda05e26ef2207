"""What a checkpoint of a script is, as its saves have shown."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.rehearsal.recording import is_even, median
from prime_train.rehearsal.written_files import Completed

GAP_S = 1.0
"""Seconds without a write after which a further file begins another save, where names have no number."""
BEST = re.compile(r"(?:^|[-_.])best(?:[-_.]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Save:
    """One save. `number`: that of its name, None for a name without one. `members`: its files, in the order
    in which they were completed. `deleted_s`: when the script deleted it.
    """

    number: int | None
    path: str
    begun_s: float
    closed_s: float
    members: tuple[Completed, ...]
    deleted_s: float | None = None

    @property
    def size(self) -> int:
        return sum({one.path: one.size for one in self.members}.values())


@dataclass(frozen=True)
class Beside:
    """A file beside the checkpoints: `kind` is pointer, link, copy, best or shared."""

    path: str
    kind: str
    text: str = ""


@dataclass(frozen=True)
class SavesSeen:
    """What was recognised. `folder`: of the checkpoints, with wildcards where its name changes. `pattern`,
    `also`: as a config has them. `counts`: step or epoch, empty for a fixed name. `width`: digits of a number
    that is padded with zeros, 0 for none or unknown. `is_folder`: each checkpoint is a folder. `sentinel`:
    the file that is always completed last, within a folder. `is_renamed`: it appears by a rename, complete.
    `is_in_place`: each save writes over the last one. `others`: names of what else was saved repeatedly.
    """

    saves: tuple[Save, ...] = ()
    folder: str = ""
    pattern: str = ""
    also: tuple[str, ...] = ()
    counts: str = ""
    width: int = 0
    is_folder: bool = False
    sentinel: str = ""
    is_renamed: bool = False
    is_in_place: bool = False
    beside: tuple[Beside, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[int]:
        return [save.number for save in self.saves if save.number is not None]

    @property
    def every(self) -> int:
        """The distance of the numbers of two saves; 0 if it is not known."""
        distances = [b - a for a, b in zip(self.numbers, self.numbers[1:], strict=False)]
        return int(median(distances)) if distances else 0

    @property
    def save_s(self) -> float:
        """Seconds from the first write of a save to its last."""
        return median([save.closed_s - save.begun_s for save in self.saves])

    @property
    def kept(self) -> int | None:
        """How many checkpoints the script keeps; None if it was not seen to delete any."""
        if self.is_in_place:
            return 1
        gone = [save.deleted_s for save in self.saves if save.deleted_s is not None]
        if not gone:
            return None
        last = max(gone)
        return sum(
            1
            for save in self.saves
            if save.closed_s <= last + GAP_S and (save.deleted_s is None or save.deleted_s > last)
        )

    @property
    def deletes_first(self) -> bool:
        """Whether a checkpoint was deleted right before the next one was saved, or while it was."""
        pairs = list(zip(self.saves, self.saves[1:], strict=False))
        return any(
            old.deleted_s is not None
            and any(
                # Nearer to the save that follows than to the one before.
                before.closed_s < old.deleted_s < new.closed_s
                and new.begun_s - old.deleted_s < (old.deleted_s - before.closed_s) / 2
                for before, new in pairs
            )
            for old in self.saves
        )


def distances(numbers: Sequence[int]) -> str:
    """Return how the numbers of the saves follow each other, in words."""
    if is_even(numbers):
        return f"each {numbers[1] - numbers[0]}"
    steps = Counter(b - a for a, b in itertools.pairwise(numbers))
    return "at irregular distances" if len(steps) > 1 else ""

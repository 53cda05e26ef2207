"""Names of checkpoints: which files and folders belong to a checkpoint, and which number its name has.

A pattern is a name with `{step}` or `{epoch}` in it; `*` stands for any other characters. A number may be
padded with zeros on the disk, whether or not the pattern says so, and the name that is there is the one that
is stored and restored. Of a pattern with both, `{step}` is the number that counts. A pattern with neither is
a fixed name, which is overwritten at each save.

Steps in prime-train count what is completed: step 1 is the first. A trainer whose first number is 0 says so
with `first`.
"""

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

from prime_train.trainers.kind import Configured
from prime_train.trainers.registry import TRAINERS

STEP, EPOCH = "step", "epoch"
DRAFTS = (".part", ".partial", ".tmp", ".temp", ".incomplete", "-tmp", "~")
"""Endings of names under which trainers write what they rename afterwards."""
_DIGITS = "[0-9]{1,12}"
_WILD = frozenset("*?[")


def counting_field(pattern: str) -> str:
    """Return the name in braces that counts; empty for a fixed name. Raises ValueError if braces do not
    match.
    """
    fields = {field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None}
    return next((field for field in (STEP, EPOCH) if field in fields), "")


def has_wildcards(path: str) -> bool:
    return bool(_WILD & set(path))


def fixed_part(folder: str) -> str:
    """Return the part of a folder's path before its first wildcard; `.` if there is none."""
    parts = PurePosixPath(folder).parts
    fixed = next((at for at, part in enumerate(parts) if has_wildcards(part)), len(parts))
    return str(PurePosixPath(*parts[:fixed]))


def is_place(folder: str, place: str) -> bool:
    """Return whether `place`, a relative path, is a folder that the config's `folder`, which may have
    wildcards, stands for.
    """
    wanted, parts = PurePosixPath(folder).parts, PurePosixPath(place).parts
    if (
        str(PurePosixPath(place)) != place
        or ".." in parts
        or PurePosixPath(place).is_absolute()
        or len(wanted) != len(parts)
    ):
        return False
    return all(
        name == part or (has_wildcards(part) and _is_like(part, name))
        for part, name in zip(wanted, parts, strict=True)
    )


@dataclass(frozen=True)
class CheckpointNames:
    """How a run names its checkpoints. `also`: patterns of further files that belong to the same number.
    `first`: the number of the first step or epoch, 0 or 1. `folder`: where they are, relative to the working
    tree, perhaps with wildcards.
    """

    pattern: str
    also: tuple[str, ...] = ()
    first: int = 1
    folder: str = "checkpoints"

    @classmethod
    def of(cls, spec: Configured) -> "CheckpointNames":
        checkpoints, gathered_in = spec.checkpoints, TRAINERS[spec.trainer.kind].gathered_in
        folder = checkpoints.folder if gathered_in is None else gathered_in(spec)
        return cls(checkpoints.pattern, checkpoints.also, first_number(spec), folder)

    @cached_property
    def is_fixed(self) -> bool:
        """Whether the name has no number, so that each save overwrites the last one."""
        return not counting_field(self.pattern)

    def step_of(self, name: str) -> int | None:
        """Return the step of the checkpoint whose main name is exactly `name`; None for any other name, and
        for a fixed one.
        """
        number = self.number_in(name)
        return None if number is None else number - self.first + 1

    def number_in(self, name: str) -> int | None:
        """Return the number in the name of a checkpoint, as the trainer counts; None for any other name, and
        for a fixed one.
        """
        return None if self.is_fixed else _number_in(self.pattern, name)

    def is_main(self, name: str) -> bool:
        """Return whether a file or folder of this name is a checkpoint, or the first part of one."""
        return _matches_fixed(self.pattern, name) if self.is_fixed else self.number_in(name) is not None

    def belongs(self, name: str, main: str) -> bool:
        """Return whether `name` is a part, besides the main one, of the checkpoint whose main name is
        `main`.
        """
        return any(self.belongs_by(pattern, name, main) for pattern in self.also)

    def belongs_by(self, pattern: str, name: str, main: str) -> bool:
        """Return whether `name` is the part that this pattern of `also` stands for."""
        if not counting_field(pattern):
            return _matches_fixed(pattern, name)
        number = self.number_in(main)
        return number is not None and _number_in(pattern, name) == number

    def is_shared(self, name: str) -> bool:
        """Return whether a file of this name belongs to every checkpoint, because its name has no number
        while theirs have one: each save overwrites it.
        """
        return not self.is_fixed and any(
            _matches_fixed(pattern, name) for pattern in self.also if not counting_field(pattern)
        )

    def is_part(self, name: str) -> bool:
        """Return whether a file or folder of this name belongs to any checkpoint."""
        numbered = (pattern for pattern in self.also if counting_field(pattern))
        fixed = (pattern for pattern in self.also if not counting_field(pattern))
        return (
            self.is_main(name)
            or any(_number_in(pattern, name) is not None for pattern in numbered)
            or any(_matches_fixed(pattern, name) for pattern in fixed)
        )

    def number(self, step: int) -> int:
        """Return the trainer's number of a step."""
        return step + self.first - 1

    def name(self, step: int) -> str:
        """Return the usual name of the checkpoint of `step`, not padded unless the pattern says so."""
        number = self.number(step)
        return self.pattern.format(step=number, epoch=number)

    def names(self, name: str, step: int) -> bool:
        """Return whether `name` is the main name of the checkpoint of `step`."""
        return self.is_main(name) if self.is_fixed else self.step_of(name) == step

    def wrong_part(self, main: str, paths: Iterable[str]) -> str | None:
        """Return the first of these paths of files that does not belong to the checkpoint with this main
        name; None if all do.
        """
        tops = {path: PurePosixPath(path).parts[0] for path in paths}
        return next((path for path, top in tops.items() if top != main and not self.belongs(top, main)), None)

    @property
    def text_around_number(self) -> tuple[tuple[str, str], ...]:
        """The literal text before and after the number in each pattern, by which a text that names a
        checkpoint is recognised.
        """
        return tuple(
            dict.fromkeys(
                _around(pattern) for pattern in (self.pattern, *self.also) if counting_field(pattern)
            )
        )


def first_number(spec: Configured) -> int:
    """Return the first number in the names of checkpoints: names that count epochs count as the progress
    does, unless the config says otherwise, and names that count steps say how many are completed.
    """
    if spec.checkpoints.first is not None:
        return spec.checkpoints.first
    return spec.trainer.progress.first if counting_field(spec.checkpoints.pattern) == EPOCH else 1


def counts_epochs(spec: Configured) -> bool:
    """Return whether the steps of the run are epochs, by the names of its checkpoints."""
    return counting_field(spec.checkpoints.pattern) == EPOCH


@lru_cache(maxsize=256)
def _is_like(part: str, name: str) -> re.Match[str] | None:
    return None if name.startswith(".") and not part.startswith(".") else re.fullmatch(translate(part), name)


def _number_in(pattern: str, name: str) -> int | None:
    if name.endswith(DRAFTS) and not pattern.endswith(DRAFTS):
        return None
    expression, width = _expression(pattern)
    found = expression.fullmatch(name)
    if found is None:
        return None
    number = int(found["number"])
    return number if not width or found["number"] == f"{number:0{width}d}" else None


def _matches_fixed(pattern: str, name: str) -> bool:
    return (
        not (name.endswith(DRAFTS) and not pattern.endswith(DRAFTS))
        and _expression(pattern)[0].fullmatch(name) is not None
    )


@lru_cache(maxsize=256)
def _expression(pattern: str) -> tuple[re.Pattern[str], int]:
    """Return a regular expression for all names of the pattern, with the group `number`, and the width of the
    number where the pattern demands one.
    """
    counts, expression, width = counting_field(pattern), "", 0
    for literal, field, form, _ in string.Formatter().parse(pattern):
        expression += re.escape(literal).replace(r"\*", ".*").replace(r"\?", ".")
        # A wildcard right before a number would take all of its digits but the last.
        expression += "(?<![0-9])" if field is not None and literal.endswith(("*", "?")) else ""
        if field is not None and field == counts:
            width = max(width, int((form or "0").rstrip("d") or 0))
            expression += "(?P=number)" if "(?P<number>" in expression else f"(?P<number>{_DIGITS})"
        elif field is not None:
            expression += _DIGITS
    return re.compile(expression, re.DOTALL), width


@lru_cache(maxsize=256)
def _around(pattern: str) -> tuple[str, str]:
    """Return the literal text on both sides of the number that counts, up to the next wildcard or other
    number.
    """
    counts, before, after, is_past = counting_field(pattern), "", "", False
    for literal, field, _, _ in string.Formatter().parse(pattern):
        text = literal.replace("?", "*")
        if is_past:
            after = text.partition("*")[0]
            break
        before = (before + text).rpartition("*")[2]
        is_past = field == counts
        before = before if is_past else ""
    return before, after

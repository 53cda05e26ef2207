"""Glob patterns that choose files below a folder: `*`, `?` and `[a-z]` stay within one name, `**` crosses
folders.

A pattern that matches a folder stands for everything below it. Names that begin with a dot are matched only
by a part of the pattern that begins with a dot too, as in shells.
"""

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePosixPath

ACROSS = "**"
PATTERNS_MAX = 50
_WILD = frozenset("*?")
_NUMBER = re.compile(r"\{(?:step|epoch)(?::[^}]*)?\}")


def parts_of(pattern: str) -> tuple[str, ...]:
    """Return the parts of a pattern, one for each level of folders; a `**` that follows another one is left
    out.
    """
    parts = PurePosixPath(pattern).parts
    return tuple(
        part for place, part in enumerate(parts) if part != ACROSS or parts[place - 1 : place] != (ACROSS,)
    )


def initial_positions(pattern: Sequence[str]) -> frozenset[int]:
    """Return the positions in a pattern, as returned by `parts_of`, before any name of a path is matched."""
    return _open({0}, pattern)


def next_positions(pattern: Sequence[str], reached: frozenset[int], name: str) -> frozenset[int]:
    """Return the positions after one more name of a path; if there are none, nothing below it can match.

    All positions that can be reached are kept side by side, so that no pattern takes exponential time.
    """
    hidden, following = name.startswith("."), set()
    for at in reached:
        if at == len(pattern) or pattern[at] == ACROSS:
            following |= set() if hidden else {at}
        elif (not hidden or pattern[at].startswith(".")) and _compiled(pattern[at]).fullmatch(name):
            following.add(at + 1)
    return _open(following, pattern)


def is_match(pattern: Sequence[str], reached: frozenset[int]) -> bool:
    """Return whether the names up to these positions are a file or folder that the pattern chooses."""
    return len(pattern) in reached


def matches(pattern: str, path: str) -> bool:
    """Return whether the pattern chooses the file at `path`, which is relative to the same folder."""
    parts = parts_of(pattern)
    reached = initial_positions(parts)
    for name in PurePosixPath(path).parts:
        reached = next_positions(parts, reached, name)
    return is_match(parts, reached)


def violation_of_outputs(patterns: Sequence[str], *, folder: str, checkpoint: str) -> str | None:
    """Return what is wrong with the patterns of a run's outputs; None if nothing is. `folder` and
    `checkpoint`: the folder in which the run saves checkpoints, and the pattern of their names, with `{step}`
    or `{epoch}`.
    """
    if len(patterns) > PATTERNS_MAX:
        return f"{len(patterns)} patterns are too many; at most {PATTERNS_MAX} are allowed"
    above = PurePosixPath(folder).parts
    for pattern in patterns:
        parts = parts_of(pattern)
        if not any(set(part) - _WILD for part in parts):
            return (
                f"{pattern!r} matches the entire working tree; name the files or folders to keep, "
                "such as results/**"
            )
        inside = len(parts) > len(above) and parts[: len(above)] == above
        if inside and _is_checkpoint(parts[len(above)], checkpoint):
            return (
                f"{pattern!r} lies inside a checkpoint; checkpoints are uploaded anyway, so delete "
                "this pattern"
            )
    return None


def _is_checkpoint(part: str, checkpoint: str) -> bool:
    literals = _NUMBER.split(checkpoint)
    return len(literals) > 1 and re.fullmatch("[0-9*?]+".join(map(re.escape, literals)), part) is not None


def _open(reached: set[int], pattern: Sequence[str]) -> frozenset[int]:
    """Return the positions and, for each one at a `**`, also the next one, because `**` may match no folder
    at all.
    """
    return frozenset(reached | {at + 1 for at in reached if at < len(pattern) and pattern[at] == ACROSS})


@lru_cache(maxsize=256)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))

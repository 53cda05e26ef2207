"""Regular expressions that are matched against what a trainer writes.

Python's `re` goes back and tries again: a line of 16 kB can keep it for hours, and while it works no other thread runs, so that not even
heartbeats are sent. RE2 takes time linear in the length of the line, whatever pattern and line are. In return it has no lookaround and no
back-references, and `\\d`, `\\w`, `\\s` and `\\b` mean ASCII.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from re import Match, Pattern
from typing import cast

MATCHES_MAX = 500
"""Looked at in one line: each begins a search of its own, so without a bound the time would be quadratic after all."""
_COMPILED_MAX = 1024


class PatternRefused(ValueError):
    """RE2 does not take the pattern; the message says why."""


@lru_cache(_COMPILED_MAX)
def compiled(pattern: str) -> Pattern[str]:
    """The pattern, ready to be matched in linear time. Raises PatternRefused."""
    # Only who matches loads it: control planes that merely name rules do not have it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return cast("Pattern[str]", re2.compile(pattern, options))
    except (re2.error, UnicodeError) as error:
        said = error.args[0] if error.args else error
        raise PatternRefused(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error


def load_engine() -> None:
    """Load RE2, so that a machine without it fails here and not at the first line of a trainer's output. Raises ImportError."""
    compiled("")


def found_in(pattern: str, text: str) -> bool:
    return compiled(pattern).search(text) is not None


@lru_cache(64)
def any_of(patterns: tuple[str, ...]) -> Pattern[str] | None:
    """One pattern that matches where any of these does; None where they are too large together, or name two groups alike."""
    try:
        return compiled("|".join(f"(?:{pattern})" for pattern in patterns))
    except PatternRefused:
        return None


def matches(pattern: str, text: str) -> Iterator[Match[str]]:
    """The matches one after the other, `MATCHES_MAX` at most."""
    return islice(compiled(pattern).finditer(text), MATCHES_MAX)


def refusals(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each pattern that is not taken, and why."""
    for pattern in patterns:
        try:
            compiled(pattern)
        except PatternRefused as error:
            yield pattern, str(error)

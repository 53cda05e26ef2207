"""Regular expressions that are matched against a trainer's output.

Python's `re` backtracks: it can spend hours on a line of 16 kB, and no other thread runs meanwhile, so that
not even heartbeats are sent. RE2 takes time linear in the length of the line, for every pattern and line. In
return it has no lookaround and no back-references, and `\\d`, `\\w`, `\\s` and `\\b` mean ASCII.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from re import Match, Pattern
from typing import cast

MATCHES_MAX = 500
"""Maximum number of matches examined in one line. Each match starts a new search, so without this limit the
time would be quadratic.
"""
_COMPILED_MAX = 1024


class PatternRefused(ValueError):
    """A pattern that RE2 does not accept; the message gives the reason."""


@lru_cache(_COMPILED_MAX)
def compiled(pattern: str) -> Pattern[str]:
    """Return the compiled pattern, which matches in linear time. Raises PatternRefused."""
    # Imported here because control planes that only list rules do not have RE2 installed.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return cast("Pattern[str]", re2.compile(pattern, options))
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        raise PatternRefused(
            reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from error


def load_engine() -> None:
    """Load RE2, so that a machine without it fails here and not at the first line of a trainer's output.
    Raises ImportError.
    """
    compiled("")


def found_in(pattern: str, text: str) -> bool:
    """Return whether the pattern matches anywhere in the text. Raises PatternRefused."""
    return compiled(pattern).search(text) is not None


@lru_cache(64)
def any_of(patterns: tuple[str, ...]) -> Pattern[str] | None:
    """Return one pattern that matches where any of `patterns` does; None if together they are too large or
    define a group name twice.
    """
    try:
        return compiled("|".join(f"(?:{pattern})" for pattern in patterns))
    except PatternRefused:
        return None


def matches(pattern: str, text: str) -> Iterator[Match[str]]:
    """Yield the matches in order, at most `MATCHES_MAX`."""
    return islice(compiled(pattern).finditer(text), MATCHES_MAX)


def refusals(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each pattern that RE2 does not accept, and the reason."""
    for pattern in patterns:
        try:
            compiled(pattern)
        except PatternRefused as error:
            yield pattern, str(error)

"""Finds the known names that are most similar to an unknown one."""

from collections.abc import Iterable

POSSIBLE = 0.5
"""Minimum similarity for a list of names from which a person chooses, or where the name must be one of a few
words.
"""
CLOSE = 0.72
"""Minimum similarity for a single suggestion among the names that are possible at that place."""
VERY_CLOSE = 0.85
"""Minimum similarity for a single suggestion among very many names, of which some are always similar by
chance.
"""
SURE = 0.88
"""Minimum similarity for a finding based on similarity alone: the name may be correct and only missing from
the list.
"""


def nearest(name: str, known: Iterable[str], *, likeness: float = CLOSE, limit: int = 1) -> tuple[str, ...]:
    """Return up to `limit` of the known names that are at least this similar, the most similar first. Case
    does not matter.

    `likeness`: one of the constants above, the share of characters in common from 0 to 1.
    """
    # Imported here, because names are hardly ever wrong and the module is slow to import.
    import difflib

    by_lower = {one.lower(): one for one in known}
    return tuple(by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, limit, likeness))

"""Exit codes of every command."""

from enum import IntEnum


class Exit(IntEnum):
    """What a process reports when it ends."""

    OK = 0
    FINDINGS = 1
    """The config has mistakes, or the run that was followed did not succeed."""
    USAGE = 2
    """A wrong option, a run that is not there, a wish that is not possible."""
    OUTSIDE_FAILED = 3
    """Something outside failed for now: try again."""
    OUTSIDE_REFUSED = 4
    """Something outside refused: trying again will not help."""
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141

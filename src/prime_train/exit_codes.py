"""Exit codes of every command."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit code of a process."""

    OK = 0
    FINDINGS = 1
    """The config has mistakes, or the run that was followed did not succeed."""
    USAGE = 2
    """A wrong option, an unknown run, or a request that cannot be carried out."""
    EXTERNAL_FAILED = 3
    """An external service failed temporarily: try again."""
    EXTERNAL_REFUSED = 4
    """An external service refused: trying again will not help."""
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141

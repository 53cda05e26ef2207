"""What the person at the terminal allows of one launch, which no config can allow itself."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Allowed:
    """`folders`: folders outside of the repository that the code may be in; `secret_files`: files in which
    something looks like a secret, by their paths in the folder of the code; `without_rehearsal`: a script on
    a rented machine that was not rehearsed.
    """

    folders: tuple[Path, ...] = ()
    secret_files: tuple[str, ...] = ()
    without_rehearsal: bool = False


NOTHING_ALLOWED = Allowed()

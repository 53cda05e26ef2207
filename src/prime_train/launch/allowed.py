"""What the person at the terminal allows to be uploaded, which no config can allow itself."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Allowed:
    """`folders`: folders outside of the repository that the code may be in; `secret_files`: files in which
    something looks like a secret, by their paths in the folder of the code.
    """

    folders: tuple[Path, ...] = ()
    secret_files: tuple[str, ...] = ()


NOTHING_ALLOWED = Allowed()

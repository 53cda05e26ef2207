"""A mistake of ours that one config brings out: told as a finding of that file, so that all other files are judged nevertheless."""

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from prime_train.core.exit_codes import Exit
from prime_train.core.finding import BUG, Finding
from prime_train.reports.errors import DEBUG, explained

_PACKAGE = Path(__file__).parents[1]

T = TypeVar("T")


def shielded(file: str, does: Callable[[], T], otherwise: Callable[[Finding], T]) -> T:
    """What `does` returns; where it fails in a way that nobody has foreseen, `otherwise` of the finding that says so.

    Raises what has an exit code of its own, such as a folder that cannot be read; and everything where PRIME_TRAIN_DEBUG is 1.
    """
    try:
        return does()
    except Exception as error:
        if explained(error)[0] is not Exit.BUG:
            raise
        return otherwise(_finding(file, error))


def has_bug(found: Iterable[Finding]) -> bool:
    """Whether something was not judged for a mistake of ours: then the exit code is 70."""
    return any(finding.code == BUG for finding in found)


def _finding(file: str, error: Exception) -> Finding:
    # Neither the error's text nor a line of the file: it may hold a secret.
    said = f"this file could not be judged: a bug in prime-train, {type(error).__name__} in {_place(error)}"
    return Finding(BUG, said, file, fix=f"report it with this file; {DEBUG}=1 shows more. Other files were judged")


def _place(error: Exception) -> str:
    """The innermost line of ours, such as core/sizes.py:17."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)]
    return f"{Path(ours[-1].filename).relative_to(_PACKAGE)}:{ours[-1].lineno}" if ours else "a library"

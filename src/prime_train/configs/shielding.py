"""Reports a bug in prime-train that one config triggers as a finding of that file, so that all other files are still checked."""

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
    """Return the result of `does`; if it raises an unexpected exception, return `otherwise` of a finding that reports the bug.

    Exceptions with an exit code of their own, such as an unreadable folder, are raised; with PRIME_TRAIN_DEBUG=1, so is every other.
    """
    try:
        return does()
    except Exception as error:
        if explained(error)[0] is not Exit.BUG:
            raise
        return otherwise(_finding(file, error))


def has_bug(found: Iterable[Finding]) -> bool:
    """Return whether a file could not be checked because of a bug in prime-train; the exit code is then 70."""
    return any(finding.code == BUG for finding in found)


def _finding(file: str, error: Exception) -> Finding:
    # The message contains neither the error's text nor a line of the file: both may hold a secret.
    said = f"this file could not be judged: a bug in prime-train, {type(error).__name__} in {_place(error)}"
    return Finding(BUG, said, file, fix=f"report it with this file; {DEBUG}=1 shows more. Other files were judged")


def _place(error: Exception) -> str:
    """Return the innermost frame within prime-train, such as core/sizes.py:17."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)]
    return f"{Path(ours[-1].filename).relative_to(_PACKAGE)}:{ours[-1].lineno}" if ours else "a library"

"""Reports an unexpected exception in the check of one config as a finding about that file, so that all other
files are still checked.
"""

import traceback
from collections.abc import Iterable
from pathlib import Path

from prime_train.exit_codes import Exit
from prime_train.spec.finding import BUG, Finding
from prime_train.text.explained_errors import DEBUG, explained

_PACKAGE = Path(__file__).parents[1]


def bug_as_finding(file: str, error: Exception, *, debug: bool = False) -> Finding:
    """Return a finding that reports the unexpected exception `error`, which was raised while the file was
    checked.

    Exceptions with an exit code of their own, such as an unreadable folder, are raised; with `debug`, so is
    every other.
    """
    if explained(error, debug=debug)[0] is not Exit.BUG:
        raise error
    # The message contains neither the error's text nor a line of the file: both may hold a secret.
    message = (
        f"this file could not be checked because of a bug in prime-train: {type(error).__name__} "
        "in "
        f"{_place(error)}"
    )
    return Finding(
        BUG,
        message,
        file,
        fix=f"report the bug with this file; {DEBUG}=1 shows the traceback. Other files were checked",
    )


def has_bug(found: Iterable[Finding]) -> bool:
    """Return whether a file could not be checked because of a bug in prime-train; the exit code is then
    70.
    """
    return any(finding.code == BUG for finding in found)


def _place(error: Exception) -> str:
    """Return the innermost frame within prime-train, such as core/sizes.py:17."""
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(_PACKAGE)
    ]
    return f"{Path(ours[-1].filename).relative_to(_PACKAGE)}:{ours[-1].lineno}" if ours else "a library"

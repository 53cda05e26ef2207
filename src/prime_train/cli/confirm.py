"""Ask for confirmation before an action that is hard to undo."""

import sys

import typer

from prime_train.core.errors import UsageError


def confirm(question: str, *, yes: bool) -> None:
    """Return normally if `yes` is set or the user agrees. Raises UsageError if the user declines or there is no terminal to ask on."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("confirmation is needed, but this is not a terminal", fix="add --yes")
    try:
        if typer.confirm(question):
            return
    except typer.Abort:
        raise KeyboardInterrupt from None
    raise UsageError("not confirmed: nothing was changed")

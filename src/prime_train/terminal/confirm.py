"""Ask for confirmation before an action that is hard to undo."""

import sys
from typing import Annotated

import typer

from prime_train.errors import UsageError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def confirm(question: str, *, yes: bool, as_json: bool = False) -> None:
    """Return if `yes` is set or the user agrees. Raises UsageError if the user declines, or cannot be asked
    because there is no terminal or because JSON is printed (`as_json`).
    """
    if yes:
        return
    if as_json:
        raise UsageError(
            "confirmation is needed, but JSON output leaves no room for the question", fix="add --yes"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("confirmation is needed, but this is not a terminal", fix="add --yes")
    try:
        if typer.confirm(question):
            return
    except typer.Abort:
        raise KeyboardInterrupt from None
    raise UsageError("not confirmed: nothing was changed")

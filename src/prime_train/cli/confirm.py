"""Asking before something is done that is hard to undo."""

import sys

import typer

from prime_train.core.errors import UsageError


def confirm(question: str, *, yes: bool) -> None:
    """Returns where the user agrees, or has said `yes` already. UsageError where the user does not, or nobody can be asked."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is nobody to ask: this is no terminal", fix="add --yes")
    try:
        if typer.confirm(question):
            return
    except typer.Abort:
        raise KeyboardInterrupt from None
    raise UsageError("not agreed to: nothing was changed")

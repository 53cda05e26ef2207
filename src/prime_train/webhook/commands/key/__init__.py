"""`prime-train key`: the keys of this control plane, and launch keys, which permit less."""

from typing import Any

import typer
from typer.core import TyperGroup

DEFAULT = "show"
_HELP = frozenset(("-h", "--help"))


class ShowFirst(TyperGroup):
    """A group whose command is `show` if none is given. (Typer's context types differ between its versions,
    so they are not annotated.)
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_bare = not args or (args[0].startswith("-") and not _HELP & set(args))
        return super().parse_args(ctx, [DEFAULT, *args] if is_bare else args)


key = typer.Typer(add_completion=False, cls=ShowFirst, rich_markup_mode=None)


@key.callback()
def options() -> None:
    """Show this control plane's keys; make or revoke launch keys.

    A launch key permits launching runs from one repository, reading their state and stopping them, and
    nothing else. Without a command, what another machine needs is shown.
    """

"""`prime-train dashboard [RUN]`: links to the pages of the control plane."""

from typing import Any

import typer
from typer.core import TyperGroup

DEFAULT = "link"
_HELP = frozenset(("-h", "--help"))


class LinkFirst(TyperGroup):
    """A group whose command is `link` if none is given. (Typer's context types differ between its versions,
    so they are not annotated.)
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_bare = not args or (args[0] not in self.commands and not _HELP & set(args))
        return super().parse_args(ctx, [DEFAULT, *args] if is_bare else args)


dashboard = typer.Typer(
    add_completion=False, cls=LinkFirst, subcommand_metavar="[COMMAND] [ARGS]...", rich_markup_mode=None
)


@dashboard.callback()
def options() -> None:
    """Print or revoke links to the control plane's pages.

    Without a command, a link is printed: to the list of runs, or to the page of RUN.
    """

"""`prime-train dashboard revoke`: revoke links to the pages."""

import os
from typing import Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit


def revoke(
    link: Annotated[
        str | None, typer.Argument(help="The id that was printed with the link.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Revoke all links that were ever made.")] = False,
) -> None:
    """Revoke a link to the pages, or all links.

    From then on the pages show that the link was revoked, also in browsers that have opened it before.
    """
    from prime_train.app.home import Home
    from prime_train.pages.dashboard.link import revoke_links

    if (link is None) is not every:
        raise UsageError("give the id of a link, or --all", code=Exit.USAGE)
    revoke_links(Home.of(os.environ).store(), link)
    typer.echo("all links are revoked" if link is None else f"link {link} is revoked")

"""`prime-train dashboard [RUN]`: a link to the pages of the control plane."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from prime_train.text.invocations import worded


def link_(
    run: Annotated[
        str | None,
        typer.Argument(help="Open this run's page; without it, the list of runs.", show_default=False),
    ] = None,
    hours: Annotated[
        float, typer.Option("--hours", help="Hours that the link is valid; at most a week.")
    ] = 12,
) -> None:
    """Print a link to the pages of the control plane.

    Anyone who has the link sees every run, without an account, until the link expires or is revoked. Nothing
    can be changed through it.
    """
    from prime_train.app.embedded import UNSERVED
    from prime_train.app.home import Home
    from prime_train.pages.dashboard.link import dashboard_link

    home = Home.of(os.environ)
    link = dashboard_link(home.store, home.served, home.master, hours=hours, run=run)
    typer.echo(link.url)
    typer.echo(
        f"the link is valid until {datetime.fromtimestamp(link.until_s, UTC):%Y-%m-%d %H:%M} UTC; anyone who "
        "has it can open the pages; "
        f"revoke it: prime-train dashboard revoke {link.link_id}",
        err=True,
    )
    if not link.is_served:
        typer.echo(worded(UNSERVED), err=True)

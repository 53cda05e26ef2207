"""`prime-train dashboard [RUN]`: a link to the pages of the control plane."""

import os
from typing import Annotated

import typer


def dashboard(
    run: Annotated[str | None, typer.Argument(help="Open this run's page; without it, the list of runs.", show_default=False)] = None,
    hours: Annotated[float, typer.Option("--hours", help="How long the link opens the pages; at most a week.")] = 12,
) -> None:
    """Print a link to the pages of the control plane.

    Whoever has the link sees every run, and can change nothing, until it is over. It needs no account.
    """
    from datetime import UTC, datetime

    from prime_train.control_plane.wiring.embedded import UNSERVED
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.dashboard import dashboard_link

    link = dashboard_link(Home.of(os.environ), hours=hours, run=run)
    typer.echo(link.url)
    typer.echo(f"opens the pages until {datetime.fromtimestamp(link.until_s, UTC):%Y-%m-%d %H:%M} UTC, for whoever has it", err=True)
    if not link.is_served:
        typer.echo(UNSERVED, err=True)

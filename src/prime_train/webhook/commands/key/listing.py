"""`prime-train key list`: the launch keys."""

import os
from datetime import UTC, datetime

import typer


def list_() -> None:
    """List the launch keys and what each permits.

    The keys themselves are not stored anywhere and cannot be shown.
    """
    from prime_train.app.home import Home
    from prime_train.app.launch_keys import launch_keys

    rows = launch_keys(Home.of(os.environ).store())
    for name, row in rows.items():
        of_jobs = "jobs of " if row.is_github else ""
        more = [
            f"for {row.actor}" if row.actor else "",
            f"at most ${row.usd_max:g} a run" if row.usd_max is not None else "",
            f"in environment {row.environment}" if row.environment else "",
            f"of {row.ref}" if row.ref else "",
            f"until {datetime.fromtimestamp(row.expires_s, UTC):%Y-%m-%d %H:%M} UTC"
            if row.expires_s is not None
            else "",
        ]
        typer.echo(f"{name}  {', '.join([of_jobs + row.repository, *filter(None, more)])}")
    if not rows:
        typer.echo("there is no launch key", err=True)

"""`prime-train resume RUN`: let an ended run go on from its newest checkpoint."""

import os
from typing import Annotated

import typer

from prime_train.cli.exits import Refused


def resume(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    usd: Annotated[float | None, typer.Option(help="A new budget in dollars, for all attempts together.", show_default=False)] = None,
    hours: Annotated[float | None, typer.Option(help="A new limit of paid hours, for all attempts together.", show_default=False)] = None,
) -> None:
    """Let an ended run go on.

    One that was stopped, failed or cancelled goes on from its newest checkpoint.
    """
    from math import isfinite

    from prime_train.cli.home import Home
    from prime_train.cli.wishes import ask
    from prime_train.core.change import resumed

    for option, value in (("--usd", usd), ("--hours", hours)):
        if value is not None and not (isfinite(value) and value > 0):
            raise Refused(f"{option} must be more than 0, not {value}")
    home = Home.of(os.environ)
    held = ask(home.store(), run, lambda current, now_s: resumed(current, now_s, usd=usd, hours=hours))
    point = held.run.resume
    start = f"step {point.step}" if point is not None else "its newest checkpoint, if it has any"
    typer.echo(f"{held.run.run_id} is queued again, to go on from {start}")
    if home.serving() is None:
        typer.echo("no control plane serves it: start one (prime-train serve)")

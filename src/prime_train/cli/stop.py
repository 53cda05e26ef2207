"""`prime-train stop RUN`: save, flush, give the machine back."""

import os
from typing import Annotated

import typer


def stop(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    now: Annotated[bool, typer.Option("--now", help="At once, without saving.")] = False,
) -> None:
    """Stop a run.

    It saves, flushes and gives its machine back.
    """
    from prime_train.cli.home import Home
    from prime_train.cli.wishes import ask
    from prime_train.core.change import wished
    from prime_train.core.run import Want

    want = Want.CANCEL if now else Want.STOP
    home = Home.of(os.environ)
    held = ask(home.store(), run, lambda current, now_s: wished(current, want, now_s))
    typer.echo(f"{held.run.run_id}: asked to {'end at once' if now else 'save and stop'}")
    if home.serving() is None:
        typer.echo("no control plane serves it: start one (prime-train serve), or it goes on")

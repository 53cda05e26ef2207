"""`prime-train provider check`: ask the providers whether they accept the credentials that are set up."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import AsJson, print_json


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="Names of providers; by default all that are set up.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="A run's config: count the machines that fit it.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> Exit:
    """Ask the providers whether they accept the credentials that are set up.

    Nothing is rented, and looking costs nothing. A provider that does not answer does not keep the others
    from being asked. Exits with code 1 if one of them refuses its credentials or does not answer.
    """
    from prime_train.app.home import Home
    from prime_train.configs.loader import hardware_of
    from prime_train.providers.health import health
    from prime_train.providers.setup import known
    from prime_train.providers.words import in_words

    for name in names or ():
        known(name)
    home = Home.of(os.environ)
    found = health(home.root, home.environment, os.environ, hardware_of(config, os.environ), names or ())
    if as_json:
        print_json([{"name": one.name, "status": one.status, "text": in_words(one)} for one in found])
    else:
        for one in found:
            typer.echo(f"{one.status:<5}  {one.name}: {in_words(one)}")
        if not found:
            typer.echo(
                "no provider is set up here: prime-train provider add NAME; for their names: prime-train "
                "provider list"
            )
    return Exit.FINDINGS if any(one.is_wrong for one in found) else Exit.OK

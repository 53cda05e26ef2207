"""`prime-train key`: print the variables with which another machine can use this control plane."""

import os
from typing import Annotated

import typer


def key(
    show: Annotated[bool, typer.Option("--show", help="Print the key itself, too.")] = False,
) -> None:
    """Say how to reach this control plane from elsewhere.

    As variables, for a laptop or for the secrets of a repository. The key opens everything: whoever has it can rent and stop.
    """
    from prime_train.control_plane.wiring.home import MASTER, Home
    from prime_train.control_plane.wiring.providers import STORE

    home = Home.of(os.environ)
    said = home.last_serving()
    typer.echo(f"{STORE}={said.public_url if said is not None else ''}")
    typer.echo(f"{MASTER}={home.master().hex() if show else '(--show prints it)'}")
    if said is None:
        typer.echo("the address is not known: nothing has served this home yet (prime-train serve --public-url https://...)", err=True)

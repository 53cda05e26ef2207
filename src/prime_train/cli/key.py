"""`prime-train key`: print the variables with which another machine can use this control plane."""

import os
from typing import Annotated

import typer

from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.master_key import MASTER
from prime_train.control_plane.wiring.providers import STORE


def key(
    show: Annotated[bool, typer.Option("--show", help="Also print the key itself.")] = False,
) -> None:
    """Show how to reach this control plane from elsewhere.

    Prints environment variables for another machine, or for the secrets of a repository. Whoever has the key can launch and stop runs, and
    so spend money.
    """
    home = Home.of(os.environ)
    serving = home.last_serving()
    typer.echo(f"{STORE}={serving.public_url if serving is not None else ''}")
    typer.echo(f"{MASTER}={home.master().hex() if show else '(--show prints it)'}")
    if serving is None:
        typer.echo(
            "the address is unknown, because no control plane has served this home yet (prime-train serve --public-url https://...)",
            err=True,
        )

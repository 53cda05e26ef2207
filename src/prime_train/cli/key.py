"""`prime-train key`: print the variables with which another machine can use this control plane."""

import os
from typing import Annotated

import typer

from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.master_key import MASTER
from prime_train.control_plane.wiring.providers import STORE
from prime_train.operations.serve import remote_access


def key(
    show: Annotated[bool, typer.Option("--show", help="Also print the key itself.")] = False,
) -> None:
    """Show how to reach this control plane from elsewhere.

    Prints environment variables for another machine, or for the secrets of a repository. Whoever has the key can launch and stop runs, and
    so spend money.
    """
    access = remote_access(Home.of(os.environ))
    typer.echo(f"{STORE}={access.public_url}")
    typer.echo(f"{MASTER}={access.key.hex() if show else '(--show prints it)'}")
    if not access.public_url:
        typer.echo(
            "the address is unknown, because no control plane has served this home yet (prime-train serve --public-url https://...)",
            err=True,
        )

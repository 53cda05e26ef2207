"""`prime-train key [show]`: print the variables with which another machine, or the job of a pull request, can
use this control plane.
"""

import os
from typing import Annotated

import typer

from prime_train.environment import MASTER, PUBLIC_URL, STORE

HIDDEN = "(--show prints it)"


def show_(
    market: Annotated[
        bool,
        typer.Option(
            "--market", help="The key for the jobs of pull requests, which can only read offers and figures."
        ),
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Also print the key itself.")] = False,
) -> None:
    """Show how to reach this control plane from elsewhere.

    Prints environment variables for another machine, or for the secrets of a repository. Whoever has the key
    can launch and stop runs, and so spend money.

    A job of GitHub needs less: see prime-train key create --help.

    With --market, prints the variable and the secret for the job that checks pull requests. Whoever has that
    key can read what is for rent and what the runs show of machines (losses, start times, times of a step,
    what failed), and do nothing else.
    """
    from prime_train.app.home import Home
    from prime_train.app.serve import market_access, remote_access
    from prime_train.stores.market_remote import MARKET_KEY

    home = Home.of(os.environ)
    if market:
        reading = market_access(home)
        _print(PUBLIC_URL, reading.public_url, MARKET_KEY, reading.key if show else HIDDEN)
        typer.echo(
            "whoever has this key can read what is for rent and what runs show of machines, and do nothing "
            "else",
            err=True,
        )
    else:
        access = remote_access(home)
        _print(STORE, access.public_url, MASTER, access.key.hex() if show else HIDDEN)


def _print(place: str, url: str, secret: str, value: str) -> None:
    typer.echo(f"{place}={url}\n{secret}={value}")
    if not url:
        typer.echo(
            "the address is unknown, because no control plane has served this home yet (prime-train serve "
            "--public-url https://...)",
            err=True,
        )

"""`prime-train key revoke`: revoke a launch key."""

import os
from typing import Annotated

import typer


def revoke(
    name: Annotated[
        str, typer.Argument(help="The key's name, as prime-train key list shows it.", show_default=False)
    ],
) -> None:
    """Revoke a launch key.

    From then on the control plane refuses every call with it, also those of jobs that are running. Runs that
    it has launched go on.
    """
    from prime_train.app.home import Home
    from prime_train.app.launch_keys import revoke_launch_key

    revoke_launch_key(Home.of(os.environ).store(), name)
    typer.echo(f"launch key {name} is revoked")

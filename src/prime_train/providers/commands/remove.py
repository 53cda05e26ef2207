"""`prime-train provider remove NAME`: delete stored credentials."""

import os
from typing import Annotated

import typer

from prime_train.aws.commands.stack import Region, StackName
from prime_train.aws.plan import STACK
from prime_train.errors import UsageError
from prime_train.providers.commands.place import PlaceName, To, place_of
from prime_train.text.invocations import worded


def remove(
    name: Annotated[str, typer.Argument(help="Name of the provider, such as runpod.", show_default=False)],
    to: To = PlaceName.HOME,
    force: Annotated[
        bool, typer.Option("--force", help="Also while runs have machines of this provider.")
    ] = False,
    stack: StackName = STACK,
    region: Region = "",
) -> None:
    """Delete a provider's stored credentials.

    The provider itself is not told: the key stays valid until you revoke it there. Refused while runs have
    machines of this provider, because without credentials nobody looks after these, and they cost money until
    they are ended by hand.
    """
    from prime_train.app.add_provider import credentials_of, in_use
    from prime_train.app.home import Home

    variables, home = credentials_of(name), Home.of(os.environ)
    place = place_of(to, home, stack, region)
    running = [] if force else in_use(home.known_store(), name)
    if running:
        raise UsageError(
            f"{', '.join(running[:3])}{' and others have' if len(running) > 3 else ' has' if len(running) == 1 else ' have'} a machine of "
            f"{name}, which nobody could end without these credentials",
            fix=f"prime-train stop {running[0]} first, or add --force",
        )
    for done in place.forget(variables):
        if done:
            typer.echo(worded(done))

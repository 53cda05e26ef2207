"""`prime-train provider add NAME`: check a provider's credentials, and store them."""

import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from prime_train.aws.commands.stack import Region, StackName
from prime_train.aws.plan import STACK
from prime_train.errors import UsageError
from prime_train.providers.commands.place import PlaceName, To, place_of
from prime_train.providers.kinds import PROVIDERS
from prime_train.text.invocations import worded


def add(
    name: Annotated[str, typer.Argument(help="Name of the provider, such as runpod.", show_default=False)],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    to: To = PlaceName.HOME,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="A run's config: count the machines that fit it.", show_default=False),
    ] = None,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Store the credentials without asking the provider.")
    ] = False,
    stack: StackName = STACK,
    region: Region = "",
) -> None:
    """Check a provider's credentials, and store them.

    They are taken from the provider's environment variable, or else from standard input; on a terminal they
    are asked for, and not shown. The provider is asked for the account, its machines and its offers: nothing
    is rented, and looking costs nothing. Credentials that it does not accept are stored nowhere.
    """
    from prime_train.app.add_provider import checked_value, credentials_of, try_credentials
    from prime_train.app.home import Home
    from prime_train.configs.loader import hardware_of
    from prime_train.providers.words import lines

    if more:
        raise UsageError(
            "a key is not given on the command line, where other users and the shell's history see it; it "
            "was not used",
            fix=f"run prime-train provider add {name if name in PROVIDERS else 'NAME'} and enter it when "
            "asked, or pipe it in",
        )
    variables, home = credentials_of(name), Home.of(os.environ)
    place, hardware = place_of(to, home, stack, region), hardware_of(config, os.environ)
    values = {
        variable: checked_value(variable, text)
        for variable, text in zip(variables, _given(name, variables), strict=True)
    }
    if unchecked:
        typer.echo(f"{PROVIDERS[name].title} was not asked whether it accepts this")
    else:
        typer.echo(f"looking at {PROVIDERS[name].title}; nothing is rented, and looking costs nothing")
        for line in lines(try_credentials(name, values, home.environment, hardware)):
            typer.echo(f"  {line}")
    for done in place.keep(values):
        if done:
            typer.echo(worded(done))
    typer.echo(
        f"configs that name no provider rent from it, too; to rent only from it: hardware: {{provider: "
        f"{name}}}"
    )


def _given(name: str, variables: Sequence[str]) -> list[str]:
    """Return the values of the variables: those of the environment, and the others as the user enters
    them.
    """
    from prime_train.providers.stored_keys import has_value

    missing = [variable for variable in variables if not has_value(variable, os.environ)]
    for variable in variables:
        if variable not in missing:
            typer.echo(f"{variable} is taken from the environment")
    entered = dict(zip(missing, _entered(name, missing), strict=True)) if missing else {}
    return [entered[variable] if variable in entered else os.environ[variable] for variable in variables]


def _entered(name: str, variables: Sequence[str]) -> list[str]:
    """Return what the user enters for each variable. Several are on a line each where they come from a
    pipe.
    """
    from prime_train.providers.stored_keys import BYTES_MAX

    if sys.stdin.isatty():
        page = PROVIDERS[name].documentation
        typer.echo(
            f"{PROVIDERS[name].title} reads "
            f"{', '.join(variables)}{f'; where to get it: {page}' if page else ''}"
        )
        try:
            return [getpass.getpass(f"{variable} (not shown): ") for variable in variables]
        except EOFError:
            raise UsageError("nothing was entered, so nothing was stored") from None
    text = sys.stdin.read(BYTES_MAX * len(variables) + 1)
    if len(variables) == 1:
        return [text]
    given = text.splitlines()
    if len(given) != len(variables):
        raise UsageError(
            f"{len(given)} lines were given for {', '.join(variables)}, so nothing was stored",
            fix="give each on a line",
        )
    return given

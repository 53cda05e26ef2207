"""What is printed of a control plane that was started in the background."""

from collections.abc import Sequence

import typer

from prime_train.app.background import Started
from prime_train.app.home import Home
from prime_train.providers.configured import default_providers
from prime_train.providers.kinds import LOCAL


def print_started(
    home: Home, started: Started, *, providers: Sequence[str] = (), quietly: bool = False
) -> None:
    """Say that a control plane was started, where its log is, how to end it, and what happens while this
    machine sleeps. `providers`: those of the run that it was started for; empty: not known. `quietly`: on
    stderr, because stdout is for something else.
    """
    for line in started.warnings:
        typer.echo(line, err=True)
    typer.echo(
        f"started a control plane in the background (process {started.pid}); its log: {started.log}; to end "
        "it: prime-train down",
        err=quietly,
    )
    typer.echo(f"  {_asleep(providers or default_providers(home.environment))}", err=quietly)


def _asleep(providers: Sequence[str]) -> str:
    if tuple(providers) == (LOCAL,):
        return "while this machine sleeps, training on it pauses; it goes on when the machine wakes"
    return (
        "while this machine sleeps, rented machines train on, save and upload; but only when it wakes is a "
        "lost one replaced, or one that is done given back, which costs money until then"
    )

"""`prime-train models`: list and refresh the registry of models."""

import typer

from prime_train.cli.help.examples import epilog
from prime_train.cli.models.listing import list_
from prime_train.cli.models.refresh import refresh
from prime_train.exits import guarded

models = typer.Typer(name="models", no_args_is_help=True, rich_markup_mode=None)
models.command("list", epilog=epilog("models list"))(guarded(list_))
models.command("refresh", epilog=epilog("models refresh"))(guarded(refresh))


@models.callback()
def options() -> None:
    """The registry of models."""

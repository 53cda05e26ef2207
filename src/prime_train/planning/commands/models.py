"""`prime-train models`: list and refresh the registry of models."""

import typer

models = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@models.callback()
def options() -> None:
    """List or refresh the registry of models."""

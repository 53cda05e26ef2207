"""The Typer app of `prime-train gha`, with one command for each action."""

import typer

app = typer.Typer(
    add_completion=False,
    help="Commands of the GitHub actions, for workflows.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

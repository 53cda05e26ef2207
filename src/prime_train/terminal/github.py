"""`prime-train github`: set up repositories on GitHub."""

import typer

github = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@github.callback()
def options() -> None:
    """Set up repositories on GitHub.

    Everything is done with GitHub's own tool gh, by the user who is logged in with it.
    """

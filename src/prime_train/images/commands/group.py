"""`prime-train image COMMAND`: container images with the agent and a trainer's environment."""

import typer

image = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@image.callback()
def options() -> None:
    """Build container images from configs."""

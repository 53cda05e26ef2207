"""`prime-train config`: keep versions of a config, compare them, and show which runs used them."""

import typer

config = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@config.callback()
def options() -> None:
    """Save, compare and restore versions of a config.

    They are stored in PRIME_TRAIN_HOME (~/.prime-train), in the folder configs/ and there in one folder for each config file.
    """

"""`prime-train provider`: add providers of machines, check their credentials, list and remove them."""

import typer

provider = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@provider.callback()
def options() -> None:
    """Add, check, list and remove providers of machines.

    Credentials are stored in PRIME_TRAIN_HOME (~/.prime-train), in the folder credentials/, which only you can read. A variable of the
    environment wins over a stored credential.
    """

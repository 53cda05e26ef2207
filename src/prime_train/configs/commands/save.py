"""`prime-train config save CONFIG`: save the current state of a config as a new version."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit


def save(
    config: Annotated[
        Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)
    ],
    note: Annotated[str, typer.Option("--note", "-m", help="Note about this version.")] = "",
    name: Annotated[
        str,
        typer.Option("--name", help="Name of this version, to be used like its number.", show_default=False),
    ] = "",
) -> Exit:
    """Save the current config, together with the trainer's file."""
    from prime_train.app.home import Home
    from prime_train.configs.history.save_version import save_version

    saved = save_version(Home.of(os.environ), config, note, name)
    if not saved.is_new:
        typer.echo(f"nothing has changed since {saved.version.title}")
        return Exit.OK
    typer.echo(f"saved {saved.version.title} of {config.stem} in {saved.folder}")
    if saved.missing_file is not None:
        typer.echo(
            f"the trainer's file was not saved with it: {saved.missing_file} does not exist in this folder",
            err=True,
        )
    if not saved.is_valid:
        typer.echo(
            f"this version has errors and cannot be launched; to see them: prime-train validate {config}",
            err=True,
        )
    return Exit.OK

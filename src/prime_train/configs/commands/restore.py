"""`prime-train config restore CONFIG VERSION`: replace a config by a saved version."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit


def restore(
    config: Annotated[
        Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)
    ],
    version: Annotated[str, typer.Argument(help="Number or name of the version.", show_default=False)],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the current file even if it is not saved as a version.")
    ] = False,
) -> Exit:
    """Restore a version, together with the trainer's file."""
    from prime_train.app.home import Home
    from prime_train.configs.history.restore_version import restore_version

    restored = restore_version(Home.of(os.environ), config, version, force=force)
    typer.echo(f"{', '.join(map(str, restored.files))}: {restored.version.title}")
    return Exit.OK

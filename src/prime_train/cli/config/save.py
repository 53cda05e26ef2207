"""`prime-train config save CONFIG`: save the current state of a config as a new version."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

NOTE_CHARS_MAX = 200


def save(
    config: Annotated[Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)],
    note: Annotated[str, typer.Option("--note", "-m", help="Why it is as it is.")] = "",
) -> Exit:
    """Keep the config as it is now, and the trainer's file with it."""
    from prime_train.adapters.config_yaml import masked
    from prime_train.operations.config_versions import spec_of, trainer_file, versions_of

    versions = versions_of(config)
    texts = versions.now()
    for text in (texts.config, texts.trainer or ""):
        if masked(text) != text:
            raise UsageError(
                f"{config} has a secret spelled out: that is not kept", fix="put it into the environment, and its name under secrets"
            )
    saved = versions.all()
    if saved and saved[-1].texts == texts:
        typer.echo(f"nothing changed since {saved[-1].title}")
        return Exit.OK
    version = versions.add(texts, "".join(char for char in note if char.isprintable())[:NOTE_CHARS_MAX])
    typer.echo(f"{version.title} of {config.stem} is saved, in {versions.folder}")
    beside = trainer_file(texts.config)
    if beside is not None and texts.trainer is None:
        typer.echo(f"without its trainer's file: there is no {beside}, seen from here", err=True)
    if spec_of(texts.config) is None:
        typer.echo(f"it cannot be launched as it is: prime-train validate {config}", err=True)
    return Exit.OK

"""`prime-train models refresh`: update the registry of models from Hugging Face."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit


def refresh(
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default the registry itself.", show_default=False)
    ] = None,
) -> Exit:
    """Read all models again from Hugging Face and write the registry.

    Trainers that are known to work and known issues are kept, because Hugging Face does not publish them.
    Models that it does not have are named, and kept unchanged.
    """
    from prime_train.planning.hugging_face_hub import Hub
    from prime_train.planning.models import refreshed, registry_file, save_registry

    fresh, missing = refreshed(Hub.of(os.environ), datetime.now(UTC).date())
    for model in missing:
        typer.echo(f"{model}: not on Hugging Face, or not public", err=True)
    target = out or registry_file()
    save_registry(fresh, target)
    typer.echo(f"{target}: {len(fresh.models) - len(missing)} of {len(fresh.models)} models were read again")
    return Exit.OK

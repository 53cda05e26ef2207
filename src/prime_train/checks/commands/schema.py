"""`prime-train schema`: the JSON schema of a config, for editors."""

from pathlib import Path
from typing import Annotated

import typer


def schema(
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default standard output.", show_default=False)
    ] = None,
) -> None:
    """Print the JSON schema of configs, for editors."""
    from prime_train.spec.schema import schema_text

    text = schema_text()
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")

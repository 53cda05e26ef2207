"""`prime-train schema`: the JSON schema of a config, for editors."""

from pathlib import Path
from typing import Annotated

import typer


def schema(
    out: Annotated[Path | None, typer.Option(help="File to write; without it, standard output.", show_default=False)] = None,
) -> None:
    """Print the JSON schema of configs, for editors."""
    text = schema_text()
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")


def schema_text() -> str:
    """The same text for the same spec, with a newline at its end."""
    import json

    from prime_train.core.spec import RunSpec

    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **RunSpec.model_json_schema()}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"

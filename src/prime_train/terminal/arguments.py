"""Parse option values that several commands share."""

import json
from typing import Annotated

import typer

from prime_train.errors import UsageError
from prime_train.text.sizes import parse_seconds


def seconds(option: str, text: str | None) -> int | None:
    """Return a duration such as 2d or 10m in whole seconds, or None if the option was not given. Raises
    UsageError if the text is not a duration.
    """
    if text is None:
        return None

    try:
        found = parse_seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    assert isinstance(found, int)
    return found


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the result and errors.")]


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))

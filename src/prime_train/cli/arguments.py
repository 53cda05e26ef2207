"""Parse option values that several commands share."""

from typing import Annotated

import typer

from prime_train.core.errors import UsageError


def seconds(option: str, text: str | None) -> int | None:
    """Return a duration such as 2d or 10m in whole seconds, or None if the option was not given. Raises UsageError if the text is not a
    duration."""
    if text is None:
        return None
    from prime_train.core.text.sizes import parse_seconds

    try:
        found = parse_seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    assert isinstance(found, int)
    return found


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print no more than is asked for, and errors.")]


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2))

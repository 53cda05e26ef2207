"""Values of options that several verbs take."""

from prime_train.core.errors import UsageError
from prime_train.core.text.sizes import parse_seconds


def seconds(option: str, text: str | None) -> int | None:
    """A duration such as 2d or 10m in whole seconds; None where the option is not given. UsageError where it is none."""
    if text is None:
        return None
    try:
        found = parse_seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    assert isinstance(found, int)
    return found

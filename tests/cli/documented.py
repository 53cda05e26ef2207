"""Compares JSON output with its description in docs/json.md."""

from collections.abc import Iterator

from prime_train.cli.help.json_fields import JSON_FIELDS


def check(command: str, value: object, *, complete: bool = False) -> None:
    """Check that every field is documented; with `whole`, also that every documented field is present, or a
    part above it that is empty.
    """
    documented, found = list(JSON_FIELDS[command]), dict(leaves(value))
    unknown = [
        path
        for path, is_empty in found.items()
        if not any(_covers(name, path, is_empty=is_empty) for name in documented)
    ]
    assert not unknown, f"{command}: not in cli/help/json_fields.py: {unknown}"
    if complete:
        gone = [
            name
            for name in documented
            if not any(_covers(name, path, is_empty=is_empty) for path, is_empty in found.items())
        ]
        assert not gone, f"{command}: in cli/help/json_fields.py, and not there: {gone}"


def leaves(value: object, path: str = "") -> Iterator[tuple[str, bool]]:
    """Yield every path to a value in it, and whether the value is empty."""
    match value:
        case list() if value:
            for item in value:
                yield from leaves(item, f"{path}[]")
        case dict() if value:
            for key, item in value.items():
                yield from leaves(item, f"{path}.{key}" if path else key)
        case list():
            yield f"{path}[]", True
        case _:
            yield path, value is None or value == {}


def _covers(name: str, path: str, *, is_empty: bool) -> bool:
    wanted, there = name.split("."), path.split(".")
    if wanted[-1] == "**":
        start = wanted[:-1][: len(there)] if is_empty else wanted[:-1]
        return len(there) >= len(start) and all(_same(*pair) for pair in zip(start, there, strict=False))
    if is_empty and len(there) < len(wanted):
        wanted = wanted[: len(there)]
    return len(wanted) == len(there) and all(
        _same(*pair, is_empty=is_empty) for pair in zip(wanted, there, strict=True)
    )


def _same(wanted: str, there: str, *, is_empty: bool = False) -> bool:
    # A list that may be left out is null then.
    return wanted in ("*", there) or (is_empty and wanted == f"{there}[]")

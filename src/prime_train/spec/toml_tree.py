"""Parses TOML text into the same tree as YAML: values are parsed by the standard library, positions are found
by `toml_scan`.
"""

import re
import tomllib
from typing import Any

from prime_train.spec.finding_drafts import (
    FindingDraft,
    Listing,
    Mapping,
    Node,
    ParseAborted,
    Scalar,
    SourcePosition,
    TreeEntry,
    Value,
)
from prime_train.spec.toml_places import Array, Leaf, Lost, Outline, Scanner, Table

_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_CORRECTIONS = {
    "Invalid value": (
        "not a TOML value",
        'write text in quotes, such as "Qwen/Qwen3-4B", and true or false in lower case',
    ),
    "Expected '=' after a key in a key/value pair": ("there is no = after the key", "write key = value"),
    "Invalid statement": ("neither a key nor a [section]", "write key = value, or [section]"),
    "Expected newline or end of document after a statement": (
        "more than one value on a line",
        "write one key = value per line",
    ),
    "Unclosed array": ("a list without its ]", "close it"),
    "Cannot declare": ("a section that already exists", "keep one of them"),
}
"""Starts of the library's error messages, each with a clearer message and a fix."""


def read_code(source: str, file: str = "") -> Mapping:
    """Return the tree of a text; `file` is the file name in its positions. An empty text has no keys. Raises
    ParseAborted if the text is not TOML or exceeds a limit.
    """
    text = source.replace("\r\n", "\n")
    scanner = Scanner(text, file)
    try:
        outline = scanner.outline()
    except Lost as lost:
        raise ParseAborted(scanner.doubled or _wrong(text, scanner, lost)) from lost
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseAborted(scanner.doubled or _draft(error, scanner.place(len(text)))) from error
    return _mapping(outline, values)


def _wrong(text: str, scanner: Scanner, lost: Lost) -> FindingDraft:
    """Return the library's error for the text up to the line at which the scanner stopped."""
    try:
        tomllib.loads(text[: scanner.line_end(lost.at)])
    except (ValueError, RecursionError) as error:
        return _draft(error, scanner.place(lost.at))
    return FindingDraft("PT004", scanner.place(lost.at), "not TOML from here on")


def _draft(error: Exception, end: SourcePosition) -> FindingDraft:
    """Return a draft for the library's error. `end` is the place to use if the error names none."""
    message = str(error)
    found = _WHERE.search(message)
    place = SourcePosition(int(found[1]), int(found[2])) if found and found[1] else end
    problem = _WHERE.sub("", message)[:200]
    text, fix = next(
        (corrected for start, corrected in _CORRECTIONS.items() if problem.startswith(start)), (problem, "")
    )
    return FindingDraft("PT004", place, f"not TOML: {text}", fix=fix)


# ------------------------------------------------------------------------------------------------------------
# the tree


def _node(outline: Outline, value: Any) -> Node:
    match outline:
        case Leaf():
            return Scalar(outline.place, value if isinstance(value, str) else outline.raw, _plain(value))
        case Array():
            items = tuple(_node(item, value[at]) for at, item in enumerate(outline.items))
            return Listing(outline.place, items, 1 + sum(item.size for item in items))
        case Table():
            return _mapping(outline, value)


def _mapping(table: Table, values: Any) -> Mapping:
    entries = tuple(
        TreeEntry(key, place, _node(inner, values[key])) for key, (place, inner) in table.entries.items()
    )
    return Mapping(table.place, entries, 1 + sum(entry.value.size for entry in entries))


def _plain(value: Any) -> Value:
    """Return dates and times as text, because no setting has such a value."""
    return value if isinstance(value, str | int | float | bool) else str(value)

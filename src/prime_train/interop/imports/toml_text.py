"""Values as the text of a TOML file."""

import json
import re
from collections.abc import Iterator

from prime_train.spec.tree import Plain

_BARE = re.compile(r"[A-Za-z0-9_-]+")
Table = dict[str, Plain]


def toml_text(values: Table) -> str:
    """Return the values as TOML, which parses to the same values; keys without a value are left out. A table is a
    section of its own, and so is each table of a list of tables.
    """
    return "\n\n".join(block for block in _blocks(values, "") if block) + "\n"


def _blocks(table: Table, path: str, head: str = "") -> Iterator[str]:
    """Yield the sections of a table: its own values, and then the tables in it. `head`: its header."""
    single = {key: value for key, value in table.items() if not _is_section(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in single.items() if value is not None]
    sections = {key: value for key, value in table.items() if _is_section(value)}
    if lines or not sections or head.startswith("[["):
        yield "\n".join([head, *lines] if head else lines)
    for key, value in sections.items():
        inner = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(value, dict):
            yield from _blocks(value, inner, f"[{inner}]")
        for item in value if isinstance(value, list) else ():
            assert isinstance(item, dict)
            yield from _blocks(item, inner, f"[[{inner}]]")


def _is_section(value: Plain) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _value(value: Plain) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join(_value(item) for item in value if item is not None)}]"
        case dict():
            inner = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
            return f"{{ {', '.join(inner)} }}"
        case _:
            return repr(value)


def _quoted(text: str) -> str:
    """Return the text in quotes, with escapes that JSON and TOML have in common."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""Text from anywhere as Markdown that says just that: no formatting, links, mentions or HTML of its own."""

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<!\w)_|_(?!\w)")
"""What would be read as Markdown or as HTML; an underscore within a word is none of it."""
_LINK = re.compile(r"(?<![\w/])(@|#)(?=\w)")
"""Of a person or an issue."""


def code(text: str) -> str:
    """As code, where nothing but the quote, the bar and the end of the line mean something."""
    kept = one_line(text).replace("|", "\\|")
    return f"`` {kept} ``" if "`" in kept else f"`{kept}`"


def plain(text: str) -> str:
    return _LINK.sub("\\1\u200b", _SPECIAL.sub(r"\\\g<0>", one_line(text)))


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table; cells are Markdown already."""
    return [f"| {' | '.join(header)} |", "|" + "---|" * len(header), *(f"| {' | '.join(row)} |" for row in rows)]


def folded(title: str, lines: list[str]) -> list[str]:
    """Lines that are shown when somebody asks for them."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]

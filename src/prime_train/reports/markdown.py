"""Text from anywhere as Markdown that says just that: no formatting, links, mentions or HTML of its own."""

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<![^\W_])_|_(?![^\W_])")
"""What would be read as Markdown or as HTML; an underscore between two letters or digits is none of it."""
_START = re.compile(r"^(?=(?:#{1,6}|[+=-]+)(?:\s|$))|^\d{1,9}(?=[.)](?:\s|$))")
"""Of a heading, a list or a line across, where it begins one."""
_LINK = re.compile(r"@|(?:#|\bGH-)(?=\w)|:(?=//)|(?i:www)(?=\.)")
"""Of a person or an issue, here or in any other repository, where people would be told that they are spoken of; and of an address, which
would be a link that seems to be ours."""
_BREAK = "&#8203;"
"""A space without width, written so that it comes through wherever characters that nobody sees are shown as escapes."""
_HARD = re.compile(r"[`|]")


def code(text: str) -> str:
    """As code. Where a quote or the bar of a table would end it, written as HTML in which no character means anything."""
    kept = one_line(text)
    if not _HARD.search(kept):
        return f"`{kept}`" if kept else ""
    return "<code>" + "".join(char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in kept) + "</code>"


def plain(text: str) -> str:
    return _START.sub(r"\g<0>\\", _LINK.sub(f"\\g<0>{_BREAK}", _SPECIAL.sub(r"\\\g<0>", one_line(text))))


def cut(text: str, chars: int) -> str:
    kept = one_line(text)
    return kept if len(kept) <= chars else kept[: chars - 1].rstrip() + "…"


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table; cells are Markdown already."""
    return [f"| {' | '.join(header)} |", "|" + ":--|" * len(header), *(f"| {' | '.join(row)} |" for row in rows)]


def folded(title: str, lines: list[str]) -> list[str]:
    """Lines that are shown when somebody asks for them."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]

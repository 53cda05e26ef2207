"""Escapes text from any source for Markdown, so that it has no formatting, links, mentions or HTML."""

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<![^\W_])_|_(?![^\W_])")
"""Characters with a meaning in Markdown or HTML; an underscore between two letters or digits has none."""
_START = re.compile(r"^(?=(?:#{1,6}|[+=-]+)(?:\s|$))|^\d{1,9}(?=[.)](?:\s|$))")
"""Pattern of the start of a heading, a list or a horizontal rule."""
_LINK = re.compile(r"@|(?:#|\bGH-)(?=\w)|:(?=//)|(?i:www)(?=\.)")
"""Pattern of the start of a mention of a person or an issue, in this or any other repository, which would
notify people, or of a URL, which would become a link that seems to be from prime-train.
"""
_BREAK = "&#8203;"
"""A zero-width space, written as an HTML entity so that it survives where invisible characters are shown as
escapes.
"""
_HARD = re.compile(r"[`|]")


def code(text: str) -> str:
    """Return the text as inline code. If it contains a backtick or a table's bar, it is written as HTML with
    every special character as an entity.
    """
    kept = one_line(text)
    if not _HARD.search(kept):
        return f"`{kept}`" if kept else ""
    return (
        "<code>"
        + "".join(char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in kept)
        + "</code>"
    )


def plain(text: str) -> str:
    """Return the text on one line, escaped so that it shows literally."""
    return _START.sub(r"\g<0>\\", _LINK.sub(f"\\g<0>{_BREAK}", _SPECIAL.sub(r"\\\g<0>", one_line(text))))


def cut(text: str, chars: int) -> str:
    """Return the text on one line, cut to at most `chars` characters with an ellipsis."""
    kept = one_line(text)
    return kept if len(kept) <= chars else kept[: chars - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """Return the text on one line, with spaces for unprintable characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table; the cells are already Markdown."""
    return [
        f"| {' | '.join(header)} |",
        "|" + ":--|" * len(header),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def folded(title: str, lines: list[str]) -> list[str]:
    """Return the lines as a section that is collapsed until it is clicked."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]

"""Neutralises text written by machines or by others, so that it is safe to show.

A terminal obeys control characters: they move the cursor, set the clipboard, rename the window or hide what
was printed. Marks of writing direction display text in another order than stored. None of them may come from
outside, so each is shown as its escape, such as `\\x1b`.
"""

import re
import unicodedata

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of unsafe characters: control characters, invisible marks (including direction marks),
surrogates, line and paragraph separators.
"""
_SUSPECT = re.compile(r"[^ -~]")
"""Characters that need a look-up: all but printable ASCII."""


def is_safe_character(character: str) -> bool:
    """Return whether the character is displayed as itself and has no other effect."""
    return unicodedata.category(character) not in _UNSAFE_CATEGORIES


def neutralized(text: str, *, keep: str = "") -> str:
    """Return the text with every character that has an effect shown as its escape, except those in `keep`,
    such as line breaks.
    """
    return _SUSPECT.sub(
        lambda found: found[0] if found[0] in keep or is_safe_character(found[0]) else _escaped(found[0]),
        text,
    )


def lines_of_text(text: str) -> str:
    """Return a text of several lines `neutralized`, with line breaks and tabs kept and carriage returns
    turned into line breaks.
    """
    return neutralized(text.replace("\r\n", "\n").replace("\r", "\n"), keep="\n\t")


def defused(text: str, *, keep: str = "") -> str:
    """Return the text, in the same length, with every character that has an effect replaced by a harmless
    one, white space by a blank; for texts that must stay within a length limit.
    """
    return _SUSPECT.sub(
        lambda found: found[0] if found[0] in keep or is_safe_character(found[0]) else _harmless(found[0]),
        text,
    )


_FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""Characters, some of them in full width, with which a cell begins that spreadsheet programs calculate: also
one that opens an address or another program.
"""


def as_cell(text: str) -> str:
    """Return the text as a cell of a table that people open in a spreadsheet program: as text, whatever it
    begins with.
    """
    return f"'{text}" if text.lstrip(" \u00a0").startswith(tuple(_FORMULA)) else text


def _harmless(character: str) -> str:
    return " " if character.isspace() else "\ufffd"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


_UNSEEN = r"\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Characters, as a pattern's, that a comparison by the rules of a language passes over, as that of GitHub's
runner does, and that are not escaped.
"""
_COMMAND = re.compile(
    rf"^((?:[^\S\r\n]|[{_UNSEEN}])*:)(?=[{_UNSEEN}]*:)|#[{_UNSEEN}]*#(?=[{_UNSEEN}]*\[)", re.MULTILINE
)
"""The start of a command to GitHub's runner: `::` after any white space at the start of a line, and `##[`
anywhere.
"""


def without_commands(text: str) -> str:
    """Return the text with everything broken up that GitHub's runner would execute as a workflow command in a
    log.
    """
    return _COMMAND.sub(lambda found: f"{found[0]} ", text)

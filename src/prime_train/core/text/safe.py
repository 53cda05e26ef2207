"""Text that a machine or a stranger wrote, made safe to show.

A terminal obeys control characters: they move the cursor, set the clipboard, rename the window or hide what was printed. Marks of writing
direction show text in another order than it has. None of them may come from outside, so each is shown as its escape, such as `\\x1b`.
"""

import re
import unicodedata

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control characters, invisible marks (of direction among them), halves of characters, line and paragraph separators."""
_SUSPECT = re.compile(r"[^ -~]")
"""Only what is not plain ASCII has to be looked up."""


def is_safe_character(character: str) -> bool:
    """Whether the character shows as itself and does nothing else."""
    return unicodedata.category(character) not in _UNSAFE_CATEGORIES


def neutralized(text: str, *, keep: str = "") -> str:
    """The text with every character that would do something shown as its escape, but for those in `keep`, such as line breaks."""
    return _SUSPECT.sub(lambda found: found[0] if found[0] in keep or is_safe_character(found[0]) else _escaped(found[0]), text)


def lines_of_text(text: str) -> str:
    """A text of several lines: line breaks and tabs stay, a carriage return is a line break, and all else is `neutralized`."""
    return neutralized(text.replace("\r\n", "\n").replace("\r", "\n"), keep="\n\t")


def defused(text: str, *, keep: str = "") -> str:
    """The text with every character that would do something replaced by one that does nothing, white space by a blank: of the same length,
    for what has to stay within a limit."""
    return _SUSPECT.sub(lambda found: found[0] if found[0] in keep or is_safe_character(found[0]) else _harmless(found[0]), text)


def _harmless(character: str) -> str:
    return " " if character.isspace() else "\ufffd"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


_COMMAND = re.compile(r"^([ \t]*):(?=:)|##(?=\[)", re.MULTILINE)
"""What begins a command of GitHub's runner: `::` at the start of a line, and `##[` anywhere."""


def without_commands(text: str) -> str:
    """The text with everything broken up that GitHub's runner takes for a command in a log."""
    return _COMMAND.sub(lambda found: f"{found[0]} ", text)

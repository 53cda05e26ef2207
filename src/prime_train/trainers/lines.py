"""One line of a trainer's output, without what terminals and launchers add to it."""

import re

LINE_CHARS_MAX = 16_384

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_RANK = re.compile(r"^\s*(?:\[(?:default|rank|trainer|worker)_?\d+\]:?\s?)+")


def clean(line: str) -> str:
    """The end of the line, `LINE_CHARS_MAX` at most, as it would stay on a screen: no colours, no `[rank0]:`, nothing drawn over, no
    byte order mark."""
    text = _ESCAPES.sub("", line[-LINE_CHARS_MAX:].rstrip())
    text = text.rsplit("\r", 1)[-1].removeprefix("\ufeff")
    rank = _RANK.match(text)
    return text[rank.end() :] if rank else text

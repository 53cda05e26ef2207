"""Removal of what terminals and launchers add to a line of a trainer's output."""

import re

LINE_CHARS_MAX = 16_384

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_RANK = re.compile(r"^\s*(?:\[(?:default|rank|trainer|worker)_?\d+\]:?\s?)+")


def clean(line: str) -> str:
    """Return the line as a terminal would finally show it: without colours, a rank prefix such as `[rank0]:`, overwritten text or a byte
    order mark.

    Only the last `LINE_CHARS_MAX` characters of the line are used.
    """
    text = _ESCAPES.sub("", line[-LINE_CHARS_MAX:].rstrip())
    text = text.rsplit("\r", 1)[-1].removeprefix("\ufeff")
    rank = _RANK.match(text)
    return text[rank.end() :] if rank else text

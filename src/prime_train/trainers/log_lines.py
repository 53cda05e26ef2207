"""Removal of what terminals and launchers add to a line of a trainer's output."""

import re

LINE_CHARS_MAX = 16_384

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_RANK = re.compile(r"^\s*(?:\[(?:default|rank|trainer|worker)_?\d+\]:?\s?)+")


_BAR = re.compile(r"\|\s{0,9}[0-9.,kMG]{1,20}/[0-9.,kMG]{1,20} \[[^\[\]]{0,300}\](?=\S)")


def unglued(line: str) -> list[str]:
    """Return the pieces of a line that several streams have written: what is printed while a progress bar
    stands in the line follows the bar without a line break.
    """
    pieces, at = [], 0
    for bar in _BAR.finditer(line[-LINE_CHARS_MAX:]) if "[" in line else ():
        pieces.append(line[-LINE_CHARS_MAX:][at : bar.end()])
        at = bar.end()
    return [*pieces, line[-LINE_CHARS_MAX:][at:]] if pieces else [line]


def clean(line: str) -> str:
    """Return the line as a terminal would finally show it: without colours, a rank prefix such as `[rank0]:`,
    overwritten text or a byte order mark.

    Only the last `LINE_CHARS_MAX` characters of the line are used.
    """
    text = _ESCAPES.sub("", line[-LINE_CHARS_MAX:].rstrip())
    text = text.rsplit("\r", 1)[-1].removeprefix("\ufeff")
    rank = _RANK.match(text)
    return text[rank.end() :] if rank else text

"""The lines of a text that comes in pieces, in bounded memory: machines write such texts, and one without
line breaks may have any size.
"""

import codecs
from collections.abc import Iterable, Iterator

LINE_CHARS_MAX = 2**20
"""Characters of a line; what follows in the same line is left out."""


def lines_in(pieces: Iterable[bytes | bytearray | memoryview]) -> Iterator[str]:
    """Yield the lines, without their ends. Bytes that are no UTF-8 are replaced."""
    decoder, rest = codecs.getincrementaldecoder("utf-8")(errors="replace"), ""
    for piece in pieces:
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (line[:LINE_CHARS_MAX] for line in lines)
        rest = rest[:LINE_CHARS_MAX]
    if rest:
        yield rest

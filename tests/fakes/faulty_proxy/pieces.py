"""Bodies that are harmed on their way, piece by piece."""

from collections.abc import Iterator


class Cut(Exception):
    """A fault says that the connection ends here."""


def first(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The rest is read and dropped, so that the connection can go on."""
    for piece in pieces:
        if size > 0:
            yield piece[:size]
        size -= len(piece)


def cut(pieces: Iterator[bytes], after_bytes: int) -> Iterator[bytes]:
    """Nothing is read beyond; ends with `Cut` in any case."""
    left = after_bytes
    while left > 0 and (piece := next(pieces, None)) is not None:
        yield piece[:left]
        left -= len(piece)
    raise Cut


def flipped(pieces: Iterator[bytes], at_byte: int) -> Iterator[bytes]:
    begin = 0
    for piece in pieces:
        here, begin = at_byte - begin, begin + len(piece)
        yield piece if not 0 <= here < len(piece) else piece[:here] + bytes([piece[here] ^ 0xFF]) + piece[here + 1 :]

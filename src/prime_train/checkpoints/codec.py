"""How one chunk of a checkpoint is kept in the bucket: as it is, or compressed without loss. The value is the suffix of its key."""

from enum import StrEnum
from mmap import mmap

from prime_train.checkpoints.codec_frames import framed, unframed

RAW_BYTES_MAX = 2**30
"""Of one chunk; a chunk has 16 MiB, so this bounds what a wrong size in a manifest can ask for."""
LEVEL = 1
"""Of zstd: half as fast again as level 3, and on tensors within a hundredth of it."""

Buffer = bytes | bytearray | memoryview | mmap


class Codec(StrEnum):
    """`BYTES2` and `BYTES4` part the bytes of each element (bf16 and fp16; fp32) into planes first."""

    NONE = ""
    ZSTD = "zstd"
    BYTES2 = "p2zstd"
    BYTES4 = "p4zstd"


_WIDTHS = {Codec.BYTES2: 2, Codec.BYTES4: 4}


def encode(codec: Codec, raw: Buffer, level: int = LEVEL) -> bytes:
    """The stored form of `raw`; the same bytes for the same arguments. Threads may encode at once, the lock of Python is released.

    `level` is that of `ZSTD`; planes have one way only. Nothing is stored as nothing. ValueError: more than RAW_BYTES_MAX.
    """
    seen = memoryview(raw).cast("B")
    _bounded(len(seen))
    if not seen:
        return b""
    match codec:
        case Codec.NONE:
            return bytes(seen)
        case Codec.ZSTD:
            return framed(seen, level)
        case Codec.BYTES2 | Codec.BYTES4:
            from prime_train.checkpoints.codec_planes import pack  # numpy costs 30 MiB, and is seldom wanted

            return pack(seen, _WIDTHS[codec])


def decode(codec: Codec, stored: Buffer, size: int) -> memoryview:
    """The `size` raw bytes that were encoded.

    ValueError: it is not the whole encoding, and nothing else, of that many bytes. No more than about twice `size` is ever allocated.
    Flipped bits may pass: whether they are the right bytes is for the content's hash to say.
    """
    seen = memoryview(stored).cast("B")
    _bounded(size)
    if size == 0 and seen:
        raise ValueError(f"the stored chunk has {len(seen)} bytes; no bytes are stored as none")
    if size == 0:
        return seen
    match codec:
        case Codec.NONE:
            return _uncoded(seen, size)
        case Codec.ZSTD:
            return memoryview(unframed(seen, size))
        case Codec.BYTES2 | Codec.BYTES4:
            from prime_train.checkpoints.codec_planes import unpack

            return unpack(seen, _WIDTHS[codec], size)


def _uncoded(stored: memoryview, size: int) -> memoryview:
    if len(stored) != size:
        raise ValueError(f"the stored chunk has {len(stored)} bytes, not {size}")
    return stored


def _bounded(size: int) -> None:
    if not 0 <= size <= RAW_BYTES_MAX:
        raise ValueError(f"a chunk of {size} bytes; it has 0 to {RAW_BYTES_MAX}")

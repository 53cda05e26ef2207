"""How one chunk of a checkpoint is stored: unchanged, or compressed without loss. The codec's value is the
suffix of the blob's key.
"""

from enum import StrEnum
from mmap import mmap

from prime_train.checkpoints.codec_frames import framed, unframed

RAW_BYTES_MAX = 2**30
"""Upper limit of the raw size of one chunk; a chunk has 16 MiB, so this bounds the allocation that a wrong
size in a manifest can cause.
"""
LEVEL = 1
"""The zstd level: 1.5 times as fast as level 3, and on tensors within 1 % of its size."""

Buffer = bytes | bytearray | memoryview | mmap


class Codec(StrEnum):
    """The encoding of a chunk. `BYTES2` and `BYTES4` first split the bytes of each element (bf16 and fp16;
    fp32) into byte planes.
    """

    NONE = ""
    ZSTD = "zstd"
    BYTES2 = "p2zstd"
    BYTES4 = "p4zstd"


_WIDTHS = {Codec.BYTES2: 2, Codec.BYTES4: 4}


def encode(codec: Codec, raw: Buffer, level: int = LEVEL) -> bytes:
    """Return the stored form of `raw`; deterministic. Releases Python's global interpreter lock, so threads
    can encode in parallel.

    `level` applies to `ZSTD`; the byte-plane codecs have fixed settings. Empty input gives empty output.
    Raises ValueError if `raw` has more than RAW_BYTES_MAX bytes.
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
            # numpy costs 30 MiB of memory, and is seldom needed
            from prime_train.checkpoints.codec_planes import (
                pack,
            )

            return pack(seen, _WIDTHS[codec])


def decode(codec: Codec, stored: Buffer, size: int) -> memoryview:
    """Return the `size` raw bytes that were encoded.

    Raises ValueError unless `stored` is exactly one complete encoding of that many bytes. Allocates at most
    about twice `size`. Flipped bits may pass undetected: the caller compares the content's hash.
    """
    seen = memoryview(stored).cast("B")
    _bounded(size)
    if size == 0 and seen:
        raise ValueError(f"the stored chunk has {len(seen)} bytes; an empty chunk must be stored as 0 bytes")
    if size == 0:
        return seen
    match codec:
        case Codec.NONE:
            if len(seen) != size:
                raise ValueError(f"the stored chunk has {len(seen)} bytes, not {size}")
            return seen
        case Codec.ZSTD:
            return memoryview(unframed(seen, size))
        case Codec.BYTES2 | Codec.BYTES4:
            from prime_train.checkpoints.codec_planes import unpack

            return unpack(seen, _WIDTHS[codec], size)


def _bounded(size: int) -> None:
    if not 0 <= size <= RAW_BYTES_MAX:
        raise ValueError(f"a chunk of {size} bytes; the size must be between 0 and {RAW_BYTES_MAX}")

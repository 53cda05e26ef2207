"""Byte planes: byte i of all elements stored side by side, each plane as a zstd frame or, if compression
gains nothing, uncompressed.

Theory of operation. A trained tensor's exponents take few values and compress to about a third; its mantissas
are noise. Interleaved, they spoil each other's compression; separated, the exponents compress well, and a
probe detects the noise, which is copied at memory speed.

An exponent plane has no repeated strings worth finding, only uneven frequencies. So zstd is set to search as
little as possible (a table of 64 entries, matches of seven bytes or more), and what remains is its entropy
coder: on weights two to three times as fast as its level 1, and a tenth smaller too, because short accidental
matches cost more than the literals they replace.

Stored format: for each plane, lowest byte first, its encoding (one byte) and its length (four bytes, little
endian); then the planes; then the bytes after the last complete element.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import zstandard

from prime_train.checkpoints.codec_frames import unframed

Plane = npt.NDArray[np.uint8]

_HEAD = struct.Struct("<BI")
_BLOCK_ELEMENTS = 2**18
"""Number of elements split at a time: few enough to stay in the core's cache, many enough that Python's
global interpreter lock is seldom taken.
"""
_PROBES, _PROBE_BYTES = 8, 2**13
_GAIN_MIN = 0.02
"""Minimum share by which a byte plane must shrink to be stored compressed."""


class _Encoding(IntEnum):
    RAW = 0
    FRAME = 1


def pack(raw: memoryview, width: int) -> bytes:
    """Return `raw`, whose elements have `width` bytes (2 or 4), split into byte planes and encoded."""
    aligned = len(raw) - len(raw) % width
    planes = [_encoded(plane) for plane in _split(raw[:aligned], width)]
    heads = [_HEAD.pack(how, len(stored)) for how, stored in planes]
    return b"".join([*heads, *(stored for _, stored in planes), raw[aligned:]])


def unpack(stored: memoryview, width: int, size: int) -> memoryview:
    """Return the `size` raw bytes that `pack` encoded. Raises ValueError if `stored` is not such an
    encoding.
    """
    raw = np.empty(size, np.uint8)
    aligned = size - size % width
    for index, (how, plane) in enumerate(_parts(stored, width, size % width)):
        raw[index:aligned:width] = np.frombuffer(_decoded(how, plane, size // width), np.uint8)
    raw[aligned:] = np.frombuffer(stored[len(stored) - size % width :], np.uint8)
    return raw.data


def _split(raw: memoryview, width: int) -> Plane:
    """Return the byte planes as the rows of an array. Shifting complete elements is twice as fast as picking
    every second or fourth byte.
    """
    elements = np.frombuffer(raw, f"<u{width}")
    planes = np.empty((width, elements.size), np.uint8)
    for start in range(0, elements.size, _BLOCK_ELEMENTS):
        block = elements[start : start + _BLOCK_ELEMENTS]
        for index in range(width):
            planes[index, start : start + _BLOCK_ELEMENTS] = block >> (8 * index)
    return planes


def _encoded(plane: Plane) -> tuple[_Encoding, memoryview | bytes]:
    if _gains(plane):
        frame = _entropy_coder().compress(plane.data)
        if len(frame) < plane.size:
            return _Encoding.FRAME, frame
    return _Encoding.RAW, plane.data


def _gains(plane: Plane) -> bool:
    """Return whether samples from all parts of the byte plane compress; compressing all of a plane of noise
    would waste time.
    """
    if plane.size <= _PROBES * _PROBE_BYTES:
        return plane.size > 0
    starts = np.linspace(0, plane.size - _PROBE_BYTES, _PROBES, dtype=np.int64)
    probe = b"".join(plane[start : start + _PROBE_BYTES].data for start in starts)
    return len(_entropy_coder().compress(probe)) < len(probe) * (1 - _GAIN_MIN)


def _entropy_coder() -> zstandard.ZstdCompressor:
    """Return a zstd compressor that hardly searches for matches. Its 256 KiB window lets its blocks, each
    with its own entropy code, have their full 128 KiB.
    """
    little = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=18, hash_log=6, min_match=7, target_length=0
    )
    return zstandard.ZstdCompressor(compression_params=little)


def _parts(stored: memoryview, width: int, tail: int) -> Iterator[tuple[int, memoryview]]:
    """Yield each byte plane's encoding and stored bytes."""
    if len(stored) < width * _HEAD.size:
        raise ValueError(
            f"{len(stored)} bytes cannot hold {width} planes, whose headers alone take {width * _HEAD.size}"
        )
    heads = list(_HEAD.iter_unpack(stored[: width * _HEAD.size]))
    at = width * _HEAD.size
    wanted = at + sum(length for _, length in heads) + tail
    if wanted != len(stored):
        raise ValueError(f"the planes' headers declare {wanted} bytes, but there are {len(stored)}")
    for how, length in heads:
        yield how, stored[at : at + length]
        at += length


def _decoded(how: int, plane: memoryview, size: int) -> memoryview | bytes:
    if how == _Encoding.FRAME:
        return unframed(plane, size)
    if how != _Encoding.RAW:
        raise ValueError(
            f"the encoding {how} of a byte plane is unknown; known encodings: "
            f"{[int(known) for known in _Encoding]}"
        )
    if len(plane) != size:
        raise ValueError(f"a plane of {len(plane)} bytes, not of {size}")
    return plane

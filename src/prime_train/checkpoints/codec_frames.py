"""Encoding of bytes as one zstd frame that declares its size, and decoding with bounded memory."""

import zstandard

_WINDOW_BYTES_MIN = 2**10
"""The smallest window size that zstd supports."""


def framed(raw: memoryview, level: int) -> bytes:
    """Return one zstd frame that declares its size; `zstd -d` can read it."""
    return zstandard.ZstdCompressor(level=level).compress(raw)


def unframed(frame: memoryview, size: int) -> bytes:
    """Return the `size` > 0 bytes in exactly one zstd frame. Raises ValueError for any other input, without
    allocating more than `size` bytes.
    """
    try:
        declared = zstandard.get_frame_parameters(frame).content_size
        if declared != size or size == 0:
            raise ValueError(f"a zstd frame of {declared} bytes, not of {size}")
        window_bytes_max = max(2 * size, _WINDOW_BYTES_MIN)
        raw = zstandard.ZstdDecompressor(max_window_size=window_bytes_max).decompress(
            frame, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise ValueError(f"not exactly one zstd frame of {size} bytes: {error}") from error
    if len(raw) != size:
        raise ValueError(f"a zstd frame of {len(raw)} bytes, not of {size}")
    return raw

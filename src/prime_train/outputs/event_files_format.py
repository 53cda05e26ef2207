"""TensorBoard event files: a sequence of framed protocol buffers.

A record is the length of its data, a checksum of that, the data and a checksum of it, all little-endian (TFRecord). The data is an `Event`
of tensorflow/core/util/event.proto with a `Summary` of scalars. Both are simple enough to be written here, without TensorFlow's libraries.
"""

import struct
from collections.abc import Iterable, Iterator

from prime_train.outputs.metric_rows import MetricRow

FILE_VERSION = "brain.Event:2"
_CASTAGNOLI = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_UINT32 = 0xFFFFFFFF


def event_records(rows: Iterable[MetricRow]) -> Iterator[bytes]:
    """Yield the content of an event file, record by record: one scalar for each value of each row."""
    first = True
    for row in rows:
        if first:
            yield _framed(_double(1, row.time_s) + _bytes(3, FILE_VERSION.encode()))
            first = False
        if row.values:
            summary = b"".join(_bytes(1, _bytes(1, name.encode(errors="replace")) + _float(2, value)) for name, value in row.values.items())
            yield _framed(_double(1, row.time_s) + _integer(2, row.step) + _bytes(5, summary))


def _framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def masked_crc(data: bytes) -> int:
    """Return the CRC-32C of the data, rotated and shifted as TFRecord files require, because a plain CRC of data that contains CRCs is
    unreliable."""
    crc = _UINT32
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= _UINT32
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _UINT32


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _table()


# ----------------------------------------------------------------------------------- fields of protocol buffers, by number and wire type


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _float(number: int, value: float) -> bytes:
    return _varint(number << 3 | 5) + _single(value)


def _single(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # beyond the range of single precision, as which TensorBoard keeps scalars
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])

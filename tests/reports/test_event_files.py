"""TensorBoard event files, read by a reader of the format that shares nothing with the writer."""

import struct
from collections.abc import Iterator

from prime_train.outputs.event_files import event_records, masked_crc
from prime_train.outputs.metric_rows import MetricRow

ROWS = [
    MetricRow(1, 1_700_000_000.5, {"loss": 0.5, "grad/norm": -2.0}),
    MetricRow(10**12 - 1, 1_700_000_001.0, {"loss": 1e300}),
]


def records(data: bytes) -> Iterator[bytes]:
    """Yield the data of each record; every checksum is compared."""
    while data:
        (size, head), body = struct.unpack("<QI", data[:12]), data[12:]
        content, (tail,) = body[:size], struct.unpack("<I", body[size : size + 4])
        assert head == redacted(data[:8])
        assert tail == redacted(content)
        yield content
        data = body[size + 4 :]


def redacted(data: bytes) -> int:
    """Compute the checksum bit by bit from its definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    crc ^= 0xFFFFFFFF
    return ((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8 & 0xFFFFFFFF


def fields(data: bytes) -> list[tuple[int, int | float | bytes]]:
    """Return the fields of a protocol buffer, by number."""
    found: list[tuple[int, int | float | bytes]] = []
    while data:
        key, data = varint(data)
        match key & 7:
            case 0:
                value, data = varint(data)
                found.append((key >> 3, value))
            case 1:
                found.append((key >> 3, struct.unpack("<d", data[:8])[0]))
                data = data[8:]
            case 2:
                size, data = varint(data)
                found.append((key >> 3, data[:size]))
                data = data[size:]
            case 5:
                found.append((key >> 3, struct.unpack("<f", data[:4])[0]))
                data = data[4:]
    return found


def varint(data: bytes) -> tuple[int, bytes]:
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, data[place + 1 :]
    raise AssertionError("a number without an end")


def test_the_checksum_is_that_of_the_standard() -> None:
    # The check value of CRC-32C (RFC 3720), redacted as in TFRecord files.
    crc = 0xE3069283
    assert masked_crc(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_every_value_of_every_row_is_a_scalar_of_its_step() -> None:
    version, *events = [dict(fields(record)) for record in records(b"".join(event_records(ROWS)))]
    assert version == {1: 1_700_000_000.5, 3: b"brain.Event:2"}
    assert [(event[1], event[2]) for event in events] == [(1_700_000_000.5, 1), (1_700_000_001.0, 10**12 - 1)]
    summary = [dict(fields(value)) for _, value in fields(bytes(events[0][5]))]  # type: ignore[arg-type]
    assert summary == [{1: b"loss", 2: 0.5}, {1: b"grad/norm", 2: -2.0}]
    ((_, value),) = fields(bytes(events[1][5]))  # type: ignore[arg-type]
    assert dict(fields(bytes(value))) == {1: b"loss", 2: float("inf")}, "beyond single precision"  # type: ignore[arg-type]


def test_without_rows_there_is_no_record() -> None:
    assert list(event_records([])) == []

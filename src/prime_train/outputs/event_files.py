"""The metrics of a run as TensorBoard event files."""

import shlex
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prime_train.buckets.keys import METRICS_STREAM
from prime_train.buckets.port import Bucket
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.outputs.files import WantedFile, WrittenFile, write_files
from prime_train.outputs.lookup import AttemptOutputs, RunOutputs, check_attempt
from prime_train.outputs.metric_rows import MetricRow, metric_rows
from prime_train.outputs.stored_content import lines_of

FILE_NAME = "events.out.tfevents.prime-train"
"""A file name that TensorBoard recognises, because it contains `tfevents`."""


@dataclass(frozen=True)
class EventFiles:
    """The event files of a run, one for each attempt that reported metrics. `folder`: what TensorBoard is to
    read.
    """

    folder: Path
    files: tuple[WrittenFile, ...]

    @property
    def program(self) -> str:
        """The path of TensorBoard. Raises UsageError if it is not installed."""
        program = shutil.which("tensorboard")
        if program is None:
            fix = f"install it (pip install tensorboard), then: {self.command}"
            raise UsageError("TensorBoard is not installed", fix=fix, code=Exit.EXTERNAL_REFUSED)
        return program

    @property
    def words(self) -> list[str]:
        """The command that shows the files, as words."""
        return ["tensorboard", "--logdir", str(self.folder)]

    @property
    def command(self) -> str:
        return shlex.join(self.words)


def write_event_files(outputs: RunOutputs, folder: Path, *, attempt: int | None = None) -> EventFiles:
    """Write the metrics of each attempt, or of one, as `RUN/attempt-N/events.out.tfevents.prime-train` in
    `folder`; files of an earlier call are replaced. Raises UsageError if there are no metrics or the folder
    cannot be written to, and the bucket's errors.
    """
    check_attempt(outputs, attempt)
    files = list(event_files(outputs, outputs.run_id, attempt=attempt))
    if not files:
        fix = "an attempt uploads them within a minute after its trainer has reported a step"
        raise UsageError(f"{outputs.run_id} has no metrics in {outputs.url}", fix=fix)
    return EventFiles(folder, tuple(write_files(folder, files)))


def event_files(outputs: RunOutputs, folder: str, *, attempt: int | None = None) -> Iterator[WantedFile]:
    """Yield the event file of each attempt that reported metrics, below `folder`."""
    for one, name, _ in outputs.texts(attempt=attempt):
        if name == METRICS_STREAM:
            content = partial(_events, outputs.bucket, one)
            yield WantedFile(
                f"{folder}/{outputs.folder_of(one)}/{FILE_NAME}", one.number, None, 0, None, content
            )


def _events(bucket: Bucket, one: AttemptOutputs) -> Iterator[bytes]:
    return event_records(metric_rows(lines_of(bucket, one.pieces[METRICS_STREAM])))


# TensorBoard event files: a sequence of framed protocol buffers.
#
# A record is the length of its data, a checksum of that, the data and a checksum of it, all little-endian
# (TFRecord). The data is an `Event` of tensorflow/core/util/event.proto with a `Summary` of scalars. Both are
# simple enough to be written here, without TensorFlow's libraries.
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
            summary = b"".join(
                _bytes(1, _bytes(1, name.encode(errors="replace")) + (_varint(2 << 3 | 5) + _single(value)))
                for name, value in row.values.items()
            )
            yield _framed(_double(1, row.time_s) + (_varint(2 << 3) + _varint(row.step)) + _bytes(5, summary))


def _framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def masked_crc(data: bytes) -> int:
    """Return the CRC-32C of the data, rotated and shifted as TFRecord files require, because a plain CRC of
    data that contains CRCs is unreliable.
    """
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


# ----------------------------------------------------------------------------------- fields of protocol
# buffers, by number and wire type


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


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

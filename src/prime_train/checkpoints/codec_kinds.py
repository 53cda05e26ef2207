"""Measurements of codecs for each kind of file, taken on a real chunk, and again when the uplink or possibly
the content has changed.
"""

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from prime_train.checkpoints.codec import Buffer, Codec, encode

CHUNK_BYTES = 16 * 2**20
SLICES, SLICE_BYTES = 4, 256 * 2**10
SLICE_ALIGNMENT = 64
"""Alignment of sampled slices in bytes, so that they start at element boundaries."""
ROUNDS = 2
"""Number of times that each slice is encoded; the fastest counts."""
GAIN_MIN = 0.05
"""Share of the time until a checkpoint is durable that a codec must save; a codec that saves less is not
chosen.
"""
BUSY_SHARE = 0.5
"""Share of the measured speed that the estimate uses: a core that encodes beside others and a trainer is
slower than one alone.
"""


FASTEST_BYTES_PER_S = 2e9
"""Upper limit of the encoding speed of one core with any codec that saves space."""


@dataclass(frozen=True)
class Sample:
    """The measurement of a codec on real data: stored bytes per raw byte, and raw bytes a second on one
    core.
    """

    codec: Codec
    ratio: float
    encode_bytes_per_s: float

    @property
    def busy(self) -> "Sample":
        return replace(self, encode_bytes_per_s=self.encode_bytes_per_s * BUSY_SHARE)


OFF = Sample(Codec.NONE, ratio=1.0, encode_bytes_per_s=math.inf)


def durable_s(sample: Sample, uplink_bytes_per_s: float, cores: float, *, total_bytes: int) -> float:
    """Return an upper bound of the seconds until `total_bytes` are sent. Encoding and sending overlap, except
    for the first chunk.
    """
    first_s = min(total_bytes, CHUNK_BYTES) / sample.encode_bytes_per_s
    encode_s = total_bytes / (sample.encode_bytes_per_s * cores)
    send_s = total_bytes * sample.ratio / uplink_bytes_per_s
    return first_s + max(encode_s, send_s)


def may_win(uplink_bytes_per_s: float, cores: float) -> bool:
    """Return whether any codec could win; if not, no measurement is needed, which would take a core from the
    senders.
    """
    fastest = FASTEST_BYTES_PER_S * BUSY_SHARE * cores
    return fastest * (1 - GAIN_MIN) > uplink_bytes_per_s


def choose(
    samples: Iterable[Sample], uplink_bytes_per_s: float | None, cores: float, *, total_bytes: int
) -> Codec:
    """Return the codec whose checkpoint is durable soonest; `NONE` unless one wins by GAIN_MIN, and while the
    uplink speed is unknown.

    `uplink_bytes_per_s`: the throughput while senders always have work, else slow encoding would be mistaken
    for a slow uplink. `cores`: cores for encoding, beside those for sending; may be a fraction.
    `total_bytes`: raw bytes of all that is sent together.
    """
    if not uplink_bytes_per_s or not total_bytes or cores <= 0:
        return Codec.NONE
    off_s = durable_s(OFF, uplink_bytes_per_s, cores, total_bytes=total_bytes)
    times = {
        sample.codec: durable_s(sample.busy, uplink_bytes_per_s, cores, total_bytes=total_bytes)
        for sample in samples
    }
    worth = {codec: time_s for codec, time_s in times.items() if time_s <= off_s * (1 - GAIN_MIN)}
    return min(worth, key=lambda codec: worth[codec], default=Codec.NONE)


def sample(raw: Buffer, candidates: Sequence[Codec], clock_s: Callable[[], float]) -> tuple[Sample, ...]:
    """Measure each candidate on slices spread over `raw`, which must not be empty. Each slice is encoded
    twice, because the first round is too slow to measure by.
    """
    piece = _spread(memoryview(raw).cast("B"))
    return tuple(_timed(codec, piece, clock_s) for codec in candidates)


def _timed(codec: Codec, piece: bytes, clock_s: Callable[[], float]) -> Sample:
    taken_s, stored = math.inf, b""
    for _ in range(ROUNDS):
        began_s = clock_s()
        stored = encode(codec, piece)
        taken_s = min(taken_s, clock_s() - began_s)
    # A coarse clock may not have advanced.
    return Sample(codec, len(stored) / len(piece), len(piece) / max(taken_s, 1e-6))


def _spread(raw: memoryview) -> bytes:
    if len(raw) <= SLICES * SLICE_BYTES:
        return bytes(raw)
    apart = (len(raw) - SLICE_BYTES) // (SLICES - 1) // SLICE_ALIGNMENT * SLICE_ALIGNMENT
    return b"".join(raw[i * apart : i * apart + SLICE_BYTES] for i in range(SLICES))


KINDS_MAX = 64
"""Number of kinds remembered at once; the one measured longest ago is dropped first."""
CHUNKS_MAX = 64
"""Number of chunks of one kind that are sent before that kind is measured again: one GiB."""
UPLINK_CHANGE_MAX = 2.0
"""Factor of change of the uplink's speed above which the codecs are measured again."""
SAMPLED_BYTES_MIN = 2**20
"""Minimum size of a chunk to measure. Smaller ones predict others poorly, and are sent quickly anyway."""
HEADER_BYTES_MAX = 2**16
"""Bytes of a safetensors header that are searched for the first tensor's type."""

_DTYPE = re.compile(rb'"dtype"\s*:\s*"([A-Z0-9_]{1,16})"')
_CANDIDATES = {
    "BF16": (Codec.BYTES2, Codec.ZSTD),
    "F16": (Codec.BYTES2, Codec.ZSTD),
    "F32": (Codec.BYTES4, Codec.ZSTD),
}
_ALL = (Codec.BYTES2, Codec.BYTES4, Codec.ZSTD)


def kind_of(path: str, head: Buffer) -> str:
    """Return the kind of a file; files of one kind compress alike. It is the name with its numbers replaced
    by # and, for a safetensors file, the first tensor's type.

    `head`: the beginning of the file. `model-00001-of-00004.safetensors` is `model-#-of-#.safetensors:BF16`.
    """
    name = re.sub(r"\d+", "#", PurePosixPath(path).name)
    if not name.endswith(".safetensors"):
        return name
    found = _DTYPE.search(bytes(memoryview(head).cast("B")[:HEADER_BYTES_MAX]))
    return f"{name}:{found.group(1).decode('ascii')}" if found else name


def candidates(kind: str) -> tuple[Codec, ...]:
    """Return the codecs to measure for this kind; all of them if the tensor type is unknown."""
    return _CANDIDATES.get(kind.rpartition(":")[2], _ALL)


@dataclass
class _Known:
    samples: tuple[Sample, ...]
    uplink_bytes_per_s: float
    chunks: int = 0

    def is_stale(self, uplink_bytes_per_s: float) -> bool:
        change = uplink_bytes_per_s / self.uplink_bytes_per_s
        return self.chunks >= CHUNKS_MAX or not 1 / UPLINK_CHANGE_MAX <= change <= UPLINK_CHANGE_MAX


@dataclass
class CodecByKind:
    """The measured codecs by kind of file. Thread-safe; only the thread that measures waits for the
    measurement. `cores`: the largest number of cores that may encode at once.
    """

    cores: int
    clock_s: Callable[[], float] = time.thread_time
    _known: dict[str, _Known] = field(default_factory=dict)
    _measuring: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def codec_for(
        self,
        kind: str,
        chunk: Buffer,
        *,
        uplink_bytes_per_s: float | None,
        idle_cores: float | None,
        total_bytes: int,
    ) -> Codec:
        """Return the codec for this chunk. `NONE` while uplink or spare cores are unknown (None): the first
        transfers measure them.

        `idle_cores`: cores that neither sending nor other processes use. `total_bytes`: raw bytes of the
        complete checkpoint in transfer.
        """
        if (
            not uplink_bytes_per_s
            or not idle_cores
            or not may_win(uplink_bytes_per_s, min(self.cores, idle_cores))
        ):
            return Codec.NONE
        if self._claim(kind, uplink_bytes_per_s, len(chunk)):
            self._measure(kind, chunk, uplink_bytes_per_s)
        with self._lock:
            samples = self._known[kind].samples if kind in self._known else ()
        return choose(samples, uplink_bytes_per_s, min(self.cores, idle_cores), total_bytes=total_bytes)

    def measured(self) -> dict[str, tuple[Sample, ...]]:
        """Return the current measurements by kind, for a log or a view."""
        with self._lock:
            return {kind: known.samples for kind, known in self._known.items()}

    def _claim(self, kind: str, uplink_bytes_per_s: float, size: int) -> bool:
        """Count the chunk, and return True in the one thread that is to measure this kind."""
        with self._lock:
            known = self._known.get(kind)
            due = known is None or known.is_stale(uplink_bytes_per_s)
            if known is not None:
                known.chunks += 1
            if not due or size < SAMPLED_BYTES_MIN or kind in self._measuring:
                return False
            self._measuring.add(kind)
            return True

    def _measure(self, kind: str, chunk: Buffer, uplink_bytes_per_s: float) -> None:
        try:
            samples = sample(chunk, candidates(kind), self.clock_s)
            with self._lock:
                self._known.pop(kind, None)  # Keeps the entries in the order of their measurement.
                self._known[kind] = _Known(samples, uplink_bytes_per_s)
                if len(self._known) > KINDS_MAX:
                    del self._known[next(iter(self._known))]
        finally:
            with self._lock:
                self._measuring.discard(kind)

"""Which codec makes a checkpoint durable soonest: a measured sample of each, and arithmetic. Never one that is slower than none."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from prime_train.checkpoints.codec import Buffer, Codec, encode

CHUNK_BYTES = 16 * 2**20
SLICES, SLICE_BYTES = 4, 256 * 2**10
SLICE_ALIGNMENT = 64
"""Slices begin where elements do."""
ROUNDS = 2
GAIN_MIN = 0.05
"""A codec is taken when the checkpoint is durable sooner by this share of the time."""
BUSY_SHARE = 0.5
"""Of the measured speed is counted on: a core that encodes beside all the others, and a trainer, is slower than one alone."""


FASTEST_BYTES_PER_S = 2e9
"""No codec that saves anything is faster than this on one core."""


@dataclass(frozen=True)
class Sample:
    """What a codec did to a piece of real data: stored bytes a raw byte, and raw bytes a second on one core."""

    codec: Codec
    ratio: float
    encode_bytes_per_s: float

    @property
    def busy(self) -> "Sample":
        return replace(self, encode_bytes_per_s=self.encode_bytes_per_s * BUSY_SHARE)


OFF = Sample(Codec.NONE, ratio=1.0, encode_bytes_per_s=math.inf)


def durable_s(sample: Sample, uplink_bytes_per_s: float, cores: float, *, total_bytes: int) -> float:
    """Seconds until all of `total_bytes` is sent, at most: encoding and sending overlap but for the first chunk's encoding."""
    first_s = min(total_bytes, CHUNK_BYTES) / sample.encode_bytes_per_s
    encode_s = total_bytes / (sample.encode_bytes_per_s * cores)
    send_s = total_bytes * sample.ratio / uplink_bytes_per_s
    return first_s + max(encode_s, send_s)


def may_win(uplink_bytes_per_s: float, cores: float) -> bool:
    """Whether a codec could be worth it at all: else none need be measured, which costs the senders a core for a while."""
    fastest = FASTEST_BYTES_PER_S * BUSY_SHARE * cores
    return fastest * (1 - GAIN_MIN) > uplink_bytes_per_s


def choose(samples: Iterable[Sample], uplink_bytes_per_s: float | None, cores: float, *, total_bytes: int) -> Codec:
    """The codec with the soonest durable checkpoint; `NONE` unless one wins by GAIN_MIN, and while the uplink is not known.

    `uplink_bytes_per_s`: what the wire takes while senders are never without work, else slow encoding would pass for a slow uplink.
    `cores`: for encoding, beside what sending takes; a part of one counts. `total_bytes`: raw, of all that is sent together.
    """
    if not uplink_bytes_per_s or not total_bytes or cores <= 0:
        return Codec.NONE
    off_s = durable_s(OFF, uplink_bytes_per_s, cores, total_bytes=total_bytes)
    times = {sample.codec: durable_s(sample.busy, uplink_bytes_per_s, cores, total_bytes=total_bytes) for sample in samples}
    worth = {codec: time_s for codec, time_s in times.items() if time_s <= off_s * (1 - GAIN_MIN)}
    return min(worth, key=lambda codec: worth[codec], default=Codec.NONE)


def sample(raw: Buffer, candidates: Sequence[Codec], clock_s: Callable[[], float]) -> tuple[Sample, ...]:
    """Encodes slices spread over `raw` with each candidate, twice, for the first time is no measure; `raw` is not empty."""
    piece = _spread(memoryview(raw).cast("B"))
    return tuple(_timed(codec, piece, clock_s) for codec in candidates)


def _timed(codec: Codec, piece: bytes, clock_s: Callable[[], float]) -> Sample:
    taken_s, stored = math.inf, b""
    for _ in range(ROUNDS):
        began_s = clock_s()
        stored = encode(codec, piece)
        taken_s = min(taken_s, clock_s() - began_s)
    return Sample(codec, len(stored) / len(piece), len(piece) / max(taken_s, 1e-6))  # A coarse clock may not have moved.


def _spread(raw: memoryview) -> bytes:
    if len(raw) <= SLICES * SLICE_BYTES:
        return bytes(raw)
    apart = (len(raw) - SLICE_BYTES) // (SLICES - 1) // SLICE_ALIGNMENT * SLICE_ALIGNMENT
    return b"".join(raw[i * apart : i * apart + SLICE_BYTES] for i in range(SLICES))

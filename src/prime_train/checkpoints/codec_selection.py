"""Chooses the codec that makes a checkpoint durable soonest, from a measured sample of each; never one slower than no compression."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from prime_train.checkpoints.codec import Buffer, Codec, encode

CHUNK_BYTES = 16 * 2**20
SLICES, SLICE_BYTES = 4, 256 * 2**10
SLICE_ALIGNMENT = 64
"""Alignment of sampled slices in bytes, so that they start at element boundaries."""
ROUNDS = 2
"""Number of times that each slice is encoded; the fastest counts."""
GAIN_MIN = 0.05
"""Share of the time until a checkpoint is durable that a codec must save; a codec that saves less is not chosen."""
BUSY_SHARE = 0.5
"""Share of the measured speed that the estimate uses: a core that encodes beside others and a trainer is slower than one alone."""


FASTEST_BYTES_PER_S = 2e9
"""Upper limit of the encoding speed of one core with any codec that saves space."""


@dataclass(frozen=True)
class Sample:
    """The measurement of a codec on real data: stored bytes per raw byte, and raw bytes a second on one core."""

    codec: Codec
    ratio: float
    encode_bytes_per_s: float

    @property
    def busy(self) -> "Sample":
        return replace(self, encode_bytes_per_s=self.encode_bytes_per_s * BUSY_SHARE)


OFF = Sample(Codec.NONE, ratio=1.0, encode_bytes_per_s=math.inf)


def durable_s(sample: Sample, uplink_bytes_per_s: float, cores: float, *, total_bytes: int) -> float:
    """Return an upper bound of the seconds until `total_bytes` are sent. Encoding and sending overlap, except for the first chunk."""
    first_s = min(total_bytes, CHUNK_BYTES) / sample.encode_bytes_per_s
    encode_s = total_bytes / (sample.encode_bytes_per_s * cores)
    send_s = total_bytes * sample.ratio / uplink_bytes_per_s
    return first_s + max(encode_s, send_s)


def may_win(uplink_bytes_per_s: float, cores: float) -> bool:
    """Return whether any codec could win; if not, no measurement is needed, which would take a core from the senders."""
    fastest = FASTEST_BYTES_PER_S * BUSY_SHARE * cores
    return fastest * (1 - GAIN_MIN) > uplink_bytes_per_s


def choose(samples: Iterable[Sample], uplink_bytes_per_s: float | None, cores: float, *, total_bytes: int) -> Codec:
    """Return the codec whose checkpoint is durable soonest; `NONE` unless one wins by GAIN_MIN, and while the uplink speed is unknown.

    `uplink_bytes_per_s`: the throughput while senders always have work, else slow encoding would be mistaken for a slow uplink. `cores`:
    cores for encoding, beside those for sending; may be a fraction. `total_bytes`: raw bytes of all that is sent together.
    """
    if not uplink_bytes_per_s or not total_bytes or cores <= 0:
        return Codec.NONE
    off_s = durable_s(OFF, uplink_bytes_per_s, cores, total_bytes=total_bytes)
    times = {sample.codec: durable_s(sample.busy, uplink_bytes_per_s, cores, total_bytes=total_bytes) for sample in samples}
    worth = {codec: time_s for codec, time_s in times.items() if time_s <= off_s * (1 - GAIN_MIN)}
    return min(worth, key=lambda codec: worth[codec], default=Codec.NONE)


def sample(raw: Buffer, candidates: Sequence[Codec], clock_s: Callable[[], float]) -> tuple[Sample, ...]:
    """Measure each candidate on slices spread over `raw`, which must not be empty. Each slice is encoded twice, because the first round is
    too slow to measure by."""
    piece = _spread(memoryview(raw).cast("B"))
    return tuple(_timed(codec, piece, clock_s) for codec in candidates)


def _timed(codec: Codec, piece: bytes, clock_s: Callable[[], float]) -> Sample:
    taken_s, stored = math.inf, b""
    for _ in range(ROUNDS):
        began_s = clock_s()
        stored = encode(codec, piece)
        taken_s = min(taken_s, clock_s() - began_s)
    return Sample(codec, len(stored) / len(piece), len(piece) / max(taken_s, 1e-6))  # A coarse clock may not have advanced.


def _spread(raw: memoryview) -> bytes:
    if len(raw) <= SLICES * SLICE_BYTES:
        return bytes(raw)
    apart = (len(raw) - SLICE_BYTES) // (SLICES - 1) // SLICE_ALIGNMENT * SLICE_ALIGNMENT
    return b"".join(raw[i * apart : i * apart + SLICE_BYTES] for i in range(SLICES))

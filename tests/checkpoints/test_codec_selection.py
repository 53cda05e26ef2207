"""The choice of a codec: never slower than none, and only one that is worthwhile."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_train.checkpoints.codec import Codec
from prime_train.checkpoints.codec_kinds import (
    BUSY_SHARE,
    CHUNK_BYTES,
    FASTEST_BYTES_PER_S,
    GAIN_MIN,
    OFF,
    Sample,
    choose,
    durable_s,
    may_win,
    sample,
)

PROPERTY = settings(deadline=None, max_examples=500, derandomize=True)
GBIT = 125_000_000.0
GB = 10**9
WEIGHTS = (Sample(Codec.ZSTD, 0.777, 0.45e9), Sample(Codec.BYTES2, 0.667, 0.95e9))
"""Samples similar to those measured on bf16 weights."""
MASTERS = (Sample(Codec.ZSTD, 0.924, 0.5e9), Sample(Codec.BYTES4, 0.834, 1.2e9))
"""Samples similar to those measured on fp32 weights."""
NOISE = (Sample(Codec.ZSTD, 1.0, 2e9), Sample(Codec.BYTES2, 1.0, 2e9))

SAMPLES = st.lists(
    st.builds(
        Sample,
        codec=st.sampled_from([Codec.ZSTD, Codec.BYTES2, Codec.BYTES4]),
        ratio=st.floats(0.0001, 1.01),
        encode_bytes_per_s=st.floats(1e6, 1e11),
    ),
    max_size=3,
    unique_by=lambda one: one.codec,
)
UPLINKS = st.floats(1e5, 1e10)
SIZES = st.integers(1, 10**13)


def ticking(step_s: float) -> Callable[[], float]:
    """Return a clock that advances by `step_s` each time it is read."""
    reading = itertools.count()
    return lambda: next(reading) * step_s


@pytest.mark.parametrize(
    ("samples", "gbit", "cores", "chosen"),
    [
        (WEIGHTS, 1, 2, Codec.BYTES2),
        (WEIGHTS, 5, 2, Codec.BYTES2),
        (WEIGHTS, 5, 1, Codec.NONE),
        (WEIGHTS, 1, 0.5, Codec.BYTES2),
        (WEIGHTS, 1, 0.2, Codec.NONE),
        (WEIGHTS, 1, 0.0, Codec.NONE),
        (WEIGHTS, 1, -0.1, Codec.NONE),
        (WEIGHTS, 10, 2, Codec.NONE),
        (WEIGHTS, 10, 4, Codec.BYTES2),
        (WEIGHTS, 25, 4, Codec.NONE),
        (WEIGHTS, 25, 16, Codec.BYTES2),
        (MASTERS, 1, 2, Codec.BYTES4),
        (MASTERS, 5, 2, Codec.BYTES4),
        (MASTERS, 10, 2, Codec.NONE),
        (MASTERS, 10, 8, Codec.BYTES4),
        (NOISE, 1, 8, Codec.NONE),
        ((), 1, 8, Codec.NONE),
    ],
)
def test_the_soonest_durable_is_chosen(
    samples: tuple[Sample, ...], gbit: float, cores: float, chosen: Codec
) -> None:
    assert choose(samples, gbit * GBIT, cores, total_bytes=100 * GB) is chosen


def test_an_unknown_uplink_is_measured_with_raw_bytes() -> None:
    assert choose(WEIGHTS, None, 64, total_bytes=100 * GB) is Codec.NONE
    assert choose(WEIGHTS, 0.0, 64, total_bytes=100 * GB) is Codec.NONE


def test_what_fits_one_chunk_does_not_wait_for_its_encoding() -> None:
    assert choose(WEIGHTS, 5 * GBIT, 64, total_bytes=CHUNK_BYTES) is Codec.NONE
    assert choose(WEIGHTS, 5 * GBIT, 64, total_bytes=100 * CHUNK_BYTES) is Codec.BYTES2


def test_sending_overlaps_with_encoding_but_for_the_first_chunk() -> None:
    slow_wire = durable_s(
        Sample(Codec.ZSTD, 0.5, 1.0 * CHUNK_BYTES), 0.5 * CHUNK_BYTES, cores=4, total_bytes=100 * CHUNK_BYTES
    )
    slow_cores = durable_s(
        Sample(Codec.ZSTD, 0.5, 1.0 * CHUNK_BYTES),
        500.0 * CHUNK_BYTES,
        cores=4,
        total_bytes=100 * CHUNK_BYTES,
    )
    assert (slow_wire, slow_cores) == (1 + 100, 1 + 25)


@given(samples=SAMPLES, uplink_bytes_per_s=UPLINKS, cores=st.floats(0.01, 200), total_bytes=SIZES)
@PROPERTY
def test_the_choice_is_never_slower_than_none_even_on_busy_cores(
    samples: list[Sample], uplink_bytes_per_s: float, cores: float, total_bytes: int
) -> None:
    codec = choose(samples, uplink_bytes_per_s, cores, total_bytes=total_bytes)
    off_s = durable_s(OFF, uplink_bytes_per_s, cores, total_bytes=total_bytes)
    for chosen in (one for one in samples if one.codec is codec):
        slowed = Sample(codec, chosen.ratio, chosen.encode_bytes_per_s * BUSY_SHARE)
        assert durable_s(slowed, uplink_bytes_per_s, cores, total_bytes=total_bytes) <= off_s * (1 - GAIN_MIN)
        assert durable_s(chosen, uplink_bytes_per_s, cores, total_bytes=total_bytes) <= off_s


@given(samples=SAMPLES, uplink_bytes_per_s=UPLINKS, cores=st.floats(0.01, 200), total_bytes=SIZES)
@PROPERTY
def test_no_codec_that_was_not_measured_is_chosen(
    samples: list[Sample], uplink_bytes_per_s: float, cores: float, total_bytes: int
) -> None:
    measured = {sample.codec for sample in samples}
    assert choose(samples, uplink_bytes_per_s, cores, total_bytes=total_bytes) in measured | {Codec.NONE}


def test_a_sample_tells_ratio_and_speed() -> None:
    half = bytes(CHUNK_BYTES // 2) + np.random.default_rng(0).bytes(CHUNK_BYTES // 2)
    (zstd,) = sample(half, [Codec.ZSTD], ticking(0.5))
    assert zstd.codec is Codec.ZSTD
    assert zstd.ratio == pytest.approx(0.5, abs=0.01)  # It looked at both halves.
    assert zstd.encode_bytes_per_s == 2 * 2**20


def test_a_clock_that_stands_still_is_no_division_by_zero() -> None:
    assert all(0 < found.encode_bytes_per_s < 1e15 for found in sample(b"x", list(Codec), ticking(0)))


@pytest.mark.parametrize(
    ("uplink", "cores", "may"),
    [(0.1e9, 1.0, True), (0.1e9, 0.1, False), (0.35e9, 0.2, False), (1.2e9, 4.0, True)],
)
def test_where_no_codec_could_keep_up_with_the_wire_none_is_measured(
    uplink: float, cores: float, may: bool
) -> None:
    assert may_win(uplink, cores) is may
    fastest = Sample(Codec.ZSTD, 0.01, FASTEST_BYTES_PER_S)
    assert may or choose([fastest], uplink, cores, total_bytes=10**12) is Codec.NONE

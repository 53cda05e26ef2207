"""What is remembered of each kind of file, when it is measured again, and that threads do not wait for one
another.
"""

import itertools
import json
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from prime_train.checkpoints.codec import Codec
from prime_train.checkpoints.codec_kinds import CHUNKS_MAX, KINDS_MAX, CodecByKind, candidates, kind_of
from tests.waiting import HANG_S

MIB = 2**20
UPLINK = 125e6
TOTAL = 100 * 10**9
NOISE = np.random.default_rng(0).bytes(MIB)
FP32 = (np.random.default_rng(1).standard_normal(MIB // 4) * 0.02).astype("<f4").tobytes()
BF16 = np.frombuffer(FP32 + FP32, "<u2")[1::2].tobytes()


class Clock:
    """A clock that advances a millisecond each time it is read, so that every codec encodes a mebibyte in
    that time.
    """

    def __init__(self) -> None:
        self.readings = itertools.count(1)
        self.read = 0

    def __call__(self) -> float:
        self.read = next(self.readings)
        return self.read / 1000


def safetensors(dtype: str, before: dict[str, dict[str, str]] | None = None) -> bytes:
    header = json.dumps(
        {**(before or {}), "wte": {"dtype": dtype, "shape": [2], "data_offsets": [0, 4]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


def ask(
    kinds: CodecByKind,
    chunk: bytes,
    kind: str = "model.pt",
    uplink_bytes_per_s: float | None = UPLINK,
    idle_cores: float | None = 64.0,
) -> Codec:
    return kinds.codec_for(
        kind, chunk, uplink_bytes_per_s=uplink_bytes_per_s, idle_cores=idle_cores, total_bytes=TOTAL
    )


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("step_5/model-00001-of-00004.safetensors", safetensors("BF16"), "model-#-of-#.safetensors:BF16"),
        (
            "model.safetensors",
            safetensors("F32", {"__metadata__": {"note": '"dtype":"BF16"'}}),
            "model.safetensors:F32",
        ),
        ("model.safetensors", b"", "model.safetensors"),
        ("dcp/__3_0.distcp", b"PK", "__#_#.distcp"),
        ("optimizer.pt", safetensors("BF16"), "optimizer.pt"),
    ],
)
def test_the_kind_of_a_file_is_its_name_without_numbers_and_its_first_type(
    path: str, head: bytes, kind: str
) -> None:
    assert kind_of(path, head) == kind


@pytest.mark.parametrize(
    ("kind", "tried"),
    [
        ("model.safetensors:BF16", {Codec.BYTES2, Codec.ZSTD}),
        ("model.safetensors:F32", {Codec.BYTES4, Codec.ZSTD}),
        ("model.safetensors:I64", {Codec.BYTES2, Codec.BYTES4, Codec.ZSTD}),
        ("__#_#.distcp", {Codec.BYTES2, Codec.BYTES4, Codec.ZSTD}),
    ],
)
def test_only_codecs_that_fit_the_type_are_tried(kind: str, tried: set[Codec]) -> None:
    assert set(candidates(kind)) == tried


@pytest.mark.parametrize(
    ("chunk", "codec"), [(BF16, Codec.BYTES2), (FP32, Codec.BYTES4), (NOISE, Codec.NONE)]
)
def test_where_the_type_is_not_known_the_content_decides(chunk: bytes, codec: Codec) -> None:
    assert ask(CodecByKind(cores=8, clock_s=Clock()), chunk) is codec


def test_the_first_bytes_go_raw_and_nothing_is_measured_until_the_uplink_is_known() -> None:
    clock = Clock()
    kinds = CodecByKind(cores=8, clock_s=clock)
    assert ask(kinds, BF16, uplink_bytes_per_s=None) is Codec.NONE
    assert clock.read == 0
    assert ask(kinds, BF16) is Codec.BYTES2


def test_a_kind_is_measured_once_and_again_after_many_chunks() -> None:
    kinds = CodecByKind(cores=8, clock_s=Clock())
    assert ask(kinds, BF16) is Codec.BYTES2
    assert [ask(kinds, NOISE) for _ in range(CHUNKS_MAX)] == [Codec.BYTES2] * CHUNKS_MAX
    assert ask(kinds, NOISE) is Codec.NONE


@pytest.mark.parametrize(
    ("change", "codec"), [(1.9, Codec.BYTES2), (2.1, Codec.NONE), (0.6, Codec.BYTES2), (0.4, Codec.NONE)]
)
def test_a_kind_is_measured_again_when_the_uplink_is_another(change: float, codec: Codec) -> None:
    kinds = CodecByKind(cores=8, clock_s=Clock())
    assert ask(kinds, BF16) is Codec.BYTES2
    assert ask(kinds, NOISE, uplink_bytes_per_s=UPLINK * change) is codec


def test_the_choice_follows_the_uplink_without_a_new_measurement() -> None:
    clock = Clock()
    kinds = CodecByKind(cores=1, clock_s=clock)
    assert ask(kinds, BF16, uplink_bytes_per_s=4e8) is Codec.BYTES2
    read = clock.read
    assert ask(kinds, BF16, uplink_bytes_per_s=7e8) is Codec.NONE
    assert clock.read == read


def test_kinds_do_not_disturb_each_other() -> None:
    kinds = CodecByKind(cores=8, clock_s=Clock())
    assert [ask(kinds, BF16, "a"), ask(kinds, NOISE, "b"), ask(kinds, BF16, "a")] == [
        Codec.BYTES2,
        Codec.NONE,
        Codec.BYTES2,
    ]
    assert set(kinds.measured()) == {"a", "b"}


def test_a_small_chunk_is_not_measured_but_goes_as_its_kind_does() -> None:
    kinds = CodecByKind(cores=8, clock_s=Clock())
    assert ask(kinds, bytes(1000)) is Codec.NONE
    assert ask(kinds, BF16) is Codec.BYTES2
    assert ask(kinds, bytes(1000)) is Codec.BYTES2


def test_no_more_than_so_many_kinds_are_remembered() -> None:
    kinds = CodecByKind(cores=8, clock_s=Clock())
    for number in range(KINDS_MAX + 1):
        ask(kinds, BF16, f"kind-{number}")
    assert len(kinds.measured()) == KINDS_MAX
    assert "kind-0" not in kinds.measured()


def test_nobody_waits_for_the_thread_that_measures() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stopped_clock() -> float:
        begun.set()
        assert go_on.wait(HANG_S)
        return 0.0

    kinds = CodecByKind(cores=8, clock_s=stopped_clock)
    with ThreadPoolExecutor(1) as threads:
        measuring = threads.submit(ask, kinds, BF16)
        assert begun.wait(HANG_S)
        assert ask(kinds, BF16) is Codec.NONE
        go_on.set()
        assert measuring.result(60) is Codec.BYTES2


def test_a_measurement_that_fails_is_tried_again() -> None:
    def no_clock() -> float:
        raise OSError("no clock")

    kinds = CodecByKind(cores=8, clock_s=no_clock)
    with pytest.raises(OSError, match="no clock"):
        ask(kinds, BF16)
    kinds.clock_s = Clock()
    assert ask(kinds, BF16) is Codec.BYTES2


@pytest.mark.parametrize("idle_cores", [None, 0.0, 0.001])
def test_without_an_idle_core_nothing_is_encoded(idle_cores: float | None) -> None:
    kinds = CodecByKind(cores=8, clock_s=Clock())
    assert ask(kinds, FP32, idle_cores=8.0) is Codec.BYTES4
    assert ask(kinds, FP32, idle_cores=idle_cores) is Codec.NONE

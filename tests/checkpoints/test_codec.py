"""Encoded data is decoded to the same bytes, tensors shrink, and invalid encodings are refused with little
memory.
"""

import mmap
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_train.checkpoints.codec import RAW_BYTES_MAX, Codec, decode, encode

MIB = 2**20
PROPERTY = settings(deadline=None, max_examples=200, derandomize=True)
CODECS = pytest.mark.parametrize("codec", list(Codec))
COMPRESSING = pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.BYTES2, Codec.BYTES4])


def noise(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def fp32(size: int) -> bytes:
    """Return weights as they are initialised: normal, with a deviation of about a hundredth."""
    return (np.random.default_rng(size).standard_normal(size // 4) * 0.02).astype("<f4").tobytes()


def bf16(size: int) -> bytes:
    """Return the upper halves of such weights."""
    return np.frombuffer(fp32(2 * size), "<u2")[1::2].tobytes()


KINDS = {
    "bf16": bf16(MIB),
    "fp32": fp32(MIB),
    "zeros": bytes(MIB),
    "noise": noise(MIB),
    "text": b"step 1 loss 2.5\n" * (MIB // 16),
}


def inflating_frame(declared: int, blocks: int) -> bytes:
    """Return a zstd frame written by hand: it declares this many bytes, and holds blocks of 128 KiB of one
    byte, each four bytes long.
    """
    header = zstandard.FRAME_HEADER + bytes([0b1000_0000, 10 << 3]) + declared.to_bytes(4, "little")
    middle = (1 << 1 | 128 * 1024 << 3).to_bytes(3, "little") + b"x"
    last = (1 | 1 << 1 | 128 * 1024 << 3).to_bytes(3, "little") + b"x"
    return header + middle * (blocks - 1) + last


def planes(*kept: tuple[int, bytes], tail: bytes = b"") -> bytes:
    """Return the stored form of byte planes, following its description."""
    heads = b"".join(bytes([how]) + len(stored).to_bytes(4, "little") for how, stored in kept)
    return heads + b"".join(stored for _, stored in kept) + tail


@CODECS
def test_every_small_size_comes_back(codec: Codec) -> None:
    for size in range(65):
        for raw in (noise(size), bytes(size)):
            assert decode(codec, encode(codec, raw), size) == raw


@CODECS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [MIB, MIB - 1, MIB - 3, 65 * 1024 + 1, 64 * 1024])
def test_data_of_every_kind_comes_back(codec: Codec, kind: str, size: int) -> None:
    raw = KINDS[kind][:size]
    assert decode(codec, encode(codec, raw), size) == raw


@given(raw=st.binary(max_size=2000), codec=st.sampled_from(list(Codec)), level=st.sampled_from([1, 3, 9]))
@PROPERTY
def test_any_bytes_come_back(raw: bytes, codec: Codec, level: int) -> None:
    assert decode(codec, encode(codec, raw, level), len(raw)) == raw


@CODECS
def test_a_mapped_file_is_encoded_where_it_lies(codec: Codec, tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(KINDS["bf16"])
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        stored = encode(codec, memoryview(mapped)[5 : MIB - 2])
        assert stored == encode(codec, KINDS["bf16"][5 : MIB - 2])
        assert encode(codec, mapped) == encode(codec, bytearray(KINDS["bf16"]))


@CODECS
@pytest.mark.parametrize("kind", ["bf16", "fp32"])
def test_a_tensor_of_more_than_one_block_comes_back(codec: Codec, kind: str) -> None:
    raw = KINDS[kind] * 3 + b"end"
    assert decode(codec, encode(codec, raw), len(raw)) == raw


@CODECS
def test_many_threads_at_once_give_the_same_bytes(codec: Codec) -> None:
    once = encode(codec, KINDS["bf16"])
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: encode(codec, KINDS["bf16"]), range(16))) == {once}
        assert all(
            back == KINDS["bf16"] for back in threads.map(lambda _: decode(codec, once, MIB), range(16))
        )


def test_bf16_weights_lose_a_third_and_fp32_weights_a_sixth() -> None:
    assert len(encode(Codec.BYTES2, KINDS["bf16"])) < 0.69 * MIB
    assert len(encode(Codec.BYTES4, KINDS["fp32"])) < 0.85 * MIB


def test_planes_beat_plain_zstd_on_tensors() -> None:
    assert len(encode(Codec.BYTES2, KINDS["bf16"])) < 0.9 * len(encode(Codec.ZSTD, KINDS["bf16"], 3))
    assert len(encode(Codec.BYTES4, KINDS["fp32"])) < 0.95 * len(encode(Codec.ZSTD, KINDS["fp32"], 3))


@COMPRESSING
def test_zeros_all_but_vanish(codec: Codec) -> None:
    assert len(encode(codec, KINDS["zeros"])) < 1000


@COMPRESSING
@pytest.mark.parametrize("size", [1, 64, 1000, MIB])
def test_noise_hardly_grows(codec: Codec, size: int) -> None:
    assert len(encode(codec, noise(size))) <= size + 64


def test_zstd_is_a_file_that_others_can_read() -> None:
    assert zstandard.ZstdDecompressor().decompress(encode(Codec.ZSTD, KINDS["text"])) == KINDS["text"]


# ------------------------------------------------------------------------------------------------------------
# what is refused


@CODECS
@pytest.mark.parametrize("kind", ["bf16", "noise"])
def test_a_truncated_encoding_is_refused(codec: Codec, kind: str) -> None:
    raw = KINDS[kind][:301]
    stored = encode(codec, raw)
    for size in range(len(stored)):
        with pytest.raises(ValueError, match="byte"):
            decode(codec, stored[:size], len(raw))


@CODECS
def test_trailing_bytes_are_refused(codec: Codec) -> None:
    for raw in (b"", b"abc", KINDS["bf16"]):
        with pytest.raises(ValueError, match="byte"):
            decode(codec, encode(codec, raw) + b"\0", len(raw))


@CODECS
@pytest.mark.parametrize("wrong", [-1, 0, 1, 299, 301, 302, RAW_BYTES_MAX + 1])
def test_another_size_is_refused(codec: Codec, wrong: int) -> None:
    with pytest.raises(ValueError, match="byte"):
        decode(codec, encode(codec, KINDS["bf16"][:300]), wrong)


@given(
    codec=st.sampled_from(list(Codec)),
    at=st.integers(0, 10**6),
    bit=st.integers(0, 7),
    kind=st.sampled_from(["bf16", "noise", "text"]),
)
@PROPERTY
def test_a_flipped_bit_is_refused_or_gives_the_right_size(codec: Codec, at: int, bit: int, kind: str) -> None:
    stored = bytearray(encode(codec, KINDS[kind][:4001]))
    stored[at % len(stored)] ^= 1 << bit
    try:
        assert len(decode(codec, stored, 4001)) == 4001
    except ValueError as error:
        assert "byte" in str(error) or "plane" in str(error)  # noqa: PT017 either outcome is right


@given(codec=st.sampled_from(list(Codec)), stored=st.binary(max_size=200), size=st.integers(0, 300))
@PROPERTY
def test_any_bytes_are_refused_or_give_the_right_size(codec: Codec, stored: bytes, size: int) -> None:
    try:
        assert len(decode(codec, stored, size)) == size
    except ValueError as error:
        assert "byte" in str(error) or "plane" in str(error)  # noqa: PT017 either outcome is right


def test_a_plane_kept_in_an_unknown_way_is_named() -> None:
    with pytest.raises(ValueError, match="encoding 7 of a byte plane is unknown"):
        decode(Codec.BYTES2, planes((0, b"ab"), (7, b"cd")), 4)


def test_planes_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match="a plane of 1 bytes, not of 2"):
        decode(Codec.BYTES2, planes((0, b"a"), (0, b"bcd")), 4)


def test_the_layout_of_planes_is_fixed() -> None:
    assert encode(Codec.BYTES2, b"aAbBcCz") == planes((0, b"abc"), (0, b"ABC"), tail=b"z")
    assert (
        decode(Codec.BYTES4, planes((0, b"a"), (0, b"b"), (0, b"c"), (0, b"d"), tail=b"xyz"), 7).tobytes()
        == b"abcdxyz"
    )


def bombs() -> list[tuple[Codec, bytes]]:
    honest = zstandard.ZstdCompressor().compress(bytes(64 * MIB))
    undeclared = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(64 * MIB))
    frames = [honest, undeclared, inflating_frame(1000, blocks=512), inflating_frame(2**32 - 1, blocks=512)]
    as_planes = [
        (Codec.BYTES2, planes((1, frame), (0, bytes(500))))
        for frame in [*frames, inflating_frame(500, blocks=512)]
    ]
    return [*((Codec.ZSTD, frame) for frame in frames), *as_planes]


@pytest.mark.parametrize("number", range(9))
def test_a_bomb_is_refused_in_little_memory(number: int) -> None:
    codec, stored = bombs()[number]
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="zstd frame"):
            decode(codec, stored, 1000)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_the_bombs_would_go_off() -> None:
    frame = inflating_frame(512 * 128 * 1024, blocks=512)
    assert zstandard.ZstdDecompressor().decompress(frame) == b"x" * (64 * MIB)

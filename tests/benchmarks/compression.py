"""Compression: the size and speed for real tensors, compared with tar, zstd and ZipNN, and when a checkpoint
is durable as a result.
"""

import importlib
import importlib.util
import math
import os
import re
import subprocess
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# First: it lets numpy have one thread.
from prime_train.demo.train import (
    DemoTrainer,
    init_params,
    load_corpus,
)

import numpy as np  # isort: skip
import zstandard
from rich.console import Console
from rich.table import Table

from prime_train.checkpoints.codec import Codec, decode, encode
from prime_train.checkpoints.codec_kinds import OFF, Sample, candidates, choose, durable_s, sample

GBITS = (1, 5, 10)
CORES = (2, 8)
TOTAL_BYTES = 100 * 10**9
TOKENS_MAX = 2**22
ZIPNN_TYPES = {"BF16": "bfloat16", "F32": "float32"}


@dataclass(frozen=True)
class Data:
    """Bytes of one kind of file. `dtype` is named as in safetensors; empty if the file does not contain
    it.
    """

    name: str
    dtype: str
    raw: bytes


@dataclass(frozen=True)
class Speed:
    """Result for a codec. `ratio` is stored / raw; speeds are raw bytes per second on one core, None if
    nothing is decoded.
    """

    tool: str
    ratio: float
    encode_bytes_per_s: float
    decode_bytes_per_s: float | None = None


def main(quick: bool = False) -> None:
    console, rounds = Console(), 3 if quick else 7
    trained, steps = train(hidden=1024 if quick else 2048, steps=60 if quick else 300)
    sized = Table("data", "codec", "stored / raw", "encode GB/s a core", "decode GB/s a core", padding=(0, 0))
    durable = Table(
        f"{TOTAL_BYTES / 1e9:.0f} GB of",
        "uplink Gbit/s",
        "cores",
        "auto takes",
        "off s",
        "auto s",
        "tar -czf s",
        padding=(0, 0),
    )
    for data in trained:
        speeds = [speed for tool in tools(data) for speed in [tool(data, rounds)]]
        for speed in speeds:
            sized.add_row(data.name, *_row(speed))
        for row in waits(data, speeds):
            durable.add_row(data.name, *row)
    console.print(sized)
    console.print(f"from {steps}; tokens: {len(trained[-1].raw) / 1e6:.0f} MB of Python's own library")
    console.print(f"each the best of {rounds}, in seconds of one core")
    console.print(durable)
    console.print(
        "computed from the speeds above: encoding and sending overlap, cores add up; tar has one core, "
        "whatever there are"
    )
    console.print(
        f"how far cores add up here: {scaling(trained[0], rounds):.2f} times the speed with {os.cpu_count()} "
        "threads"
    )


# ------------------------------------------------------------------------------------------------------------
# real tensors


def train(hidden: int, steps: int) -> tuple[list[Data], str]:
    """Return tensors from a short real training of the demo's model, made much wider."""
    text, _, alphabet = load_corpus()
    params = init_params(len(alphabet), 1, embed=128, hidden=hidden)
    trainer = DemoTrainer(
        params,
        {f"{kind}.{name}": np.zeros_like(value) for kind in "mv" for name, value in params.items()},
        1,
        64,
    )
    losses = []
    for _ in range(steps):
        trainer.advance(text)
        losses.append(trainer.loss)
    weights, mean, square = (
        values.astype("<f4")
        for values in (params["hidden_w"], trainer.moments["m.hidden_w"], trainer.moments["v.hidden_w"])
    )
    data = [
        Data("weights bf16", "BF16", as_bf16(weights)),
        Data("weights fp32", "F32", weights.tobytes()),
        Data("Adam exp_avg fp32", "F32", mean.tobytes()),
        Data("Adam exp_avg_sq fp32", "F32", square.tobytes()),
        Data("tokens .bin uint16", "", tokens()),
    ]
    fell = f"the loss fell from {losses[0]:.2f} to {np.mean(losses[-20:]):.2f}"
    return data, f"{steps} steps of Adam on {weights.size / 1e6:.1f} M weights ({fell})"


def as_bf16(weights: np.ndarray) -> bytes:
    """Return the weights rounded to the nearest bf16, ties to even, as on a GPU."""
    bits = weights.view("<u4")
    rounded: np.ndarray = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(
        16
    )
    return rounded.astype("<u2").tobytes()


def tokens() -> bytes:
    """Return Python's own library as token ids, the most frequent first: what a tokenizer leaves on disk."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    words = [word for file in files for word in re.findall(r"\w+|\W", file.read_text(encoding="utf-8"))][
        :TOKENS_MAX
    ]
    numbers = {word: number for number, (word, _) in enumerate(Counter(words).most_common(2**16))}
    return np.array([numbers.get(word, 0) for word in words], "<u2").tobytes()


# ------------------------------------------------------------------------------------------------------------
# the tools

Tool = Callable[[Data, int], Speed]


def tools(data: Data) -> list[Tool]:
    ours = [_ours(codec) for codec in candidates(f":{data.dtype}")]
    zipnn = [by_zipnn] if data.dtype and importlib.util.find_spec("zipnn") else []
    return [*ours, _zstd(1), _zstd(3), by_tar, *zipnn]


def best_s(rounds: int, do: Callable[[], object], clock_s: Callable[[], float] = time.process_time) -> float:
    """Return the best CPU time in seconds, which other load on the machine does not affect as it affects wall
    time.
    """
    taken = []
    for _ in range(rounds):
        began = clock_s()
        do()
        taken.append(clock_s() - began)
    return min(taken)


def _ours(codec: Codec) -> Tool:
    return lambda data, rounds: _both(
        f"ours: {codec}", data, rounds, lambda raw: encode(codec, raw), lambda s, n: decode(codec, s, n)
    )


def _zstd(level: int) -> Tool:
    def compress(raw: bytes) -> bytes:
        return zstandard.ZstdCompressor(level=level).compress(raw)

    return lambda data, rounds: _both(
        f"zstd -{level}",
        data,
        rounds,
        compress,
        lambda stored, _: zstandard.ZstdDecompressor().decompress(stored),
    )


def _both(
    tool: str,
    data: Data,
    rounds: int,
    there: Callable[[bytes], bytes],
    back: Callable[[bytes, int], bytes | memoryview],
) -> Speed:
    stored = there(data.raw)
    assert back(stored, len(data.raw)) == data.raw
    encode_s = best_s(rounds, lambda: there(data.raw))
    decode_s = best_s(rounds, lambda: back(stored, len(data.raw)))
    return Speed(tool, len(stored) / len(data.raw), len(data.raw) / encode_s, len(data.raw) / decode_s)


def by_tar(data: Data, rounds: int) -> Speed:
    """Measure the real tar program on a file."""
    with tempfile.TemporaryDirectory() as name:
        file, packed = Path(name) / "data", Path(name) / "data.tar.gz"
        file.write_bytes(data.raw)
        command = ["tar", "-czf", str(packed), "-C", name, "data"]
        taken_s = best_s(
            min(rounds, 2), lambda: subprocess.run(command, check=True, timeout=600), _children_s
        )
        return Speed("tar -czf", packed.stat().st_size / len(data.raw), len(data.raw) / taken_s)


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def by_zipnn(data: Data, rounds: int) -> Speed:
    zipnn = importlib.import_module("zipnn").ZipNN(
        input_format="byte", bytearray_dtype=ZIPNN_TYPES[data.dtype], threads=1
    )
    # It works in place on what it is given, so each round gets a copy; copying is a thousandth of the time.
    stored = bytes(zipnn.compress(bytearray(data.raw)))
    assert bytes(zipnn.decompress(stored)) == data.raw
    encode_s = best_s(rounds, lambda: zipnn.compress(bytearray(data.raw)))
    decode_s = best_s(rounds, lambda: zipnn.decompress(stored))
    return Speed("ZipNN", len(stored) / len(data.raw), len(data.raw) / encode_s, len(data.raw) / decode_s)


def scaling(data: Data, rounds: int) -> float:
    """Return the speed of encoding on all cores, relative to one core."""
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        together_s = best_s(
            rounds,
            lambda: list(pool.map(lambda _: encode(Codec.BYTES2, data.raw), range(8 * threads))),
            time.perf_counter,
        )
    alone_s = best_s(rounds, lambda: [encode(Codec.BYTES2, data.raw) for _ in range(8)], time.perf_counter)
    return threads * alone_s / together_s


# ------------------------------------------------------------------------------------------------------------
# the tables


def waits(data: Data, speeds: list[Speed]) -> list[list[str]]:
    """Return the time until everything is durable, by uplink and cores, with the codec that `auto` would
    choose from its own sample.
    """
    samples = sample(data.raw, candidates(f":{data.dtype}"), time.process_time)
    complete = {
        Codec(speed.tool.removeprefix("ours: ")): speed for speed in speeds if speed.tool.startswith("ours: ")
    }
    tar = next(speed for speed in speeds if speed.tool == "tar -czf")
    rows = []
    for gbit in GBITS:
        for cores in CORES:
            uplink = gbit * 1e9 / 8
            codec = choose(samples, uplink, cores, total_bytes=TOTAL_BYTES)
            taken = (
                Sample(codec, complete[codec].ratio, complete[codec].encode_bytes_per_s)
                if codec in complete
                else OFF
            )
            times = [durable_s(one, uplink, cores, total_bytes=TOTAL_BYTES) for one in (OFF, taken)]
            tar_s = TOTAL_BYTES * max(1 / tar.encode_bytes_per_s, tar.ratio / uplink)
            rows.append(
                [
                    str(gbit),
                    str(cores),
                    codec or "off",
                    *(f"{math.ceil(time_s):,}" for time_s in (*times, tar_s)),
                ]
            )
    return rows


def _row(speed: Speed) -> list[str]:
    decoded = "-" if speed.decode_bytes_per_s is None else f"{speed.decode_bytes_per_s / 1e9:.2f}"
    return [speed.tool, f"{speed.ratio:.3f}", f"{speed.encode_bytes_per_s / 1e9:.2f}", decoded]


if __name__ == "__main__":
    main()

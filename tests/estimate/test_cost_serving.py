"""The speed of an inference server."""

from dataclasses import replace

import pytest

from prime_train.estimate.cost.serving_speed import Requests, new_tokens_per_s, seconds
from prime_train.estimate.gpus import GPUS
from prime_train.estimate.memory.phases import GIB, Serving
from prime_train.estimate.models.dimensions import MODELS
from tests.benchmarks.serving_rows import served, served_told

QWEN_8B = next(model for model in MODELS if model.name == "Qwen3-8B")
ASKED = Requests(1000, 200, 200, 256)


def took_s(requested: Requests = ASKED, gpu: str = "H100", gib: float = 79) -> float:
    return seconds(QWEN_8B, Serving(), GPUS[gpu], 1, requested, gpu_bytes=gib * GIB, utilization=0.9)


def test_nine_in_ten_published_speeds_lie_in_a_range_of_a_factor_of_two() -> None:
    found = [(served_told(row), row.tokens_per_s) for row in served()]
    assert len(found) == 37
    assert sum(slow <= measured <= fast for (slow, fast), measured in found) >= 0.9 * len(found)
    assert all(fast / slow <= 2 for (slow, fast), _ in found)


def test_one_sequence_alone_is_bound_by_reading_the_weights() -> None:
    alone = Requests(1, 1, 1000, 1)
    read_s = 1000 * 2 * QWEN_8B.params / (3350e9 * 0.72)
    assert took_s(alone) == pytest.approx(read_s, rel=0.3)
    assert took_s(alone, "A100") > 1.5 * took_s(alone)


def test_more_at_once_is_faster_as_far_as_the_cache_holds_them() -> None:
    assert took_s() < took_s(replace(ASKED, at_once=16)) / 3
    assert took_s(gib=22) > took_s()


def test_longer_prompts_and_answers_take_longer() -> None:
    assert took_s(replace(ASKED, prompt=2000)) > took_s() < took_s(replace(ASKED, new=400))


def test_two_gpus_are_faster_than_one() -> None:
    one, two = (
        new_tokens_per_s(QWEN_8B, Serving(), GPUS["H100"], gpus, ASKED, gpu_bytes=79 * GIB, utilization=0.9)[
            0
        ]
        for gpus in (1, 2)
    )
    assert one < two < 2 * one


def test_requests_for_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        replace(ASKED, new=0)

"""Time and cost of a given amount of training."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.cost.duration import Between
from prime_train.estimate.gpus import GPUS, PCIE, Gpu
from prime_train.estimate.job import ModelTraining
from prime_train.estimate.memory.phases import Method, Training
from prime_train.estimate.models.dimensions import MODELS
from tests.benchmarks.speed_rows import speed_told, speeds
from tests.core.given import PROPERTY

SPEEDS = speeds()
QWEN_8B = next(model for model in MODELS if model.name == "Qwen3-8B")
WORK = ModelTraining(QWEN_8B, Training(), 1e8)

MODEL = st.sampled_from(MODELS)
GPU, COUNT = st.sampled_from([*GPUS.values(), *PCIE.values()]), st.integers(1, 16)
TRAININGS = st.builds(Training, method=st.sampled_from(Method), seq_len=st.integers(1, 10**6))
WORKS = st.builds(ModelTraining, MODEL, TRAININGS, st.floats(1, 1e13), st.booleans())
MORE = st.floats(1, 1000)


def took_s(work: ModelTraining, gpu: Gpu, count: int) -> Between:
    return work.on(count).step_s(gpu, count)


def test_nine_in_ten_published_speeds_lie_in_a_range_of_a_factor_of_two() -> None:
    found = [(speed_told(row), row.tokens_per_s) for row in SPEEDS]
    assert len(found) == 59
    assert sum(slow <= measured <= fast for (slow, fast), measured in found) >= 0.93 * len(found)
    assert all(fast / slow <= 2 for (slow, fast), _ in found)


def test_times_of_published_trainings_lie_in_their_range() -> None:
    inside = 0
    for row in SPEEDS:
        done = row.done
        training = Training(done.method, done.seq_len, done.micro_batch, recompute=done.recompute)
        reported = took_s(ModelTraining(row.model, training, 1e12, done.rl), row.gpu, row.gpus)
        inside += reported.low <= 1e12 / row.tokens_per_s <= reported.high
        assert reported.high / reported.low <= 2
    assert inside >= 0.9 * len(SPEEDS)


def test_the_time_is_the_operations_over_what_the_machine_does() -> None:
    share = 0.55 * 4096 / (4096 + 300)
    matrices_s = 8 * QWEN_8B.params / (989e12 * share)
    attention_s = 8 * 36 * 4096 * 4096 / (989e12 * 0.16)
    middle = (matrices_s + attention_s + 2e-3 * 36 / 4096) / 8
    took = took_s(WORK, GPUS["H100"], 8)
    assert took.low == pytest.approx(1e8 * middle / 1.4)
    assert took.high == pytest.approx(1e8 * middle * 1.4)


def test_gpus_without_a_link_between_them_are_slower_together() -> None:
    alone, two = (took_s(WORK, GPUS["L40S"], count).low for count in (1, 2))
    assert two == pytest.approx(alone / 2 / 0.6)


@PROPERTY
@given(WORKS, GPU, COUNT, MORE)
def test_more_tokens_never_take_less_time(work: ModelTraining, gpu: Gpu, count: int, more: float) -> None:
    took = took_s(work, gpu, count)
    longer = took_s(replace(work, tokens=work.tokens * more), gpu, count)
    assert took.low <= took.expected * (1 + 1e-9)
    assert took.expected <= took.high * (1 + 1e-9)
    assert took.low <= longer.low
    assert took.high <= longer.high


@PROPERTY
@given(WORKS, GPU, COUNT)
def test_rl_never_makes_it_shorter_and_lora_never_longer(work: ModelTraining, gpu: Gpu, count: int) -> None:
    def high(method: Method, *, rl: bool) -> float:
        return took_s(replace(work, training=replace(work.training, method=method), rl=rl), gpu, count).high

    assert high(Method.FULL, rl=True) > high(Method.FULL, rl=False)
    assert high(Method.LORA, rl=work.rl) < high(Method.FULL, rl=work.rl)


@pytest.mark.parametrize("ends", [(2, 1), (-1, 1), (0, float("inf")), (float("nan"), 1)])
def test_what_is_no_range_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="not a range"):
        Between(*ends)


@pytest.mark.parametrize("tokens", [0, -1, float("inf"), float("nan")])
def test_work_of_no_amount_is_refused(tokens: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        took_s(replace(WORK, tokens=tokens), GPUS["H100"], 8)

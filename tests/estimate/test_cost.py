"""Time and cost of a given amount of training."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.cost.duration import Between, Machine, Work, training_s
from prime_train.estimate.gpus import GPUS, PCIE
from prime_train.estimate.memory.phases import Method
from prime_train.estimate.models.dimensions import MODELS, Model
from tests.benchmarks.speed_rows import speed_told, speeds
from tests.core.given import PROPERTY

SPEEDS = speeds()
QWEN_8B = next(model for model in MODELS if model.name == "Qwen3-8B")
BOX = Machine(GPUS["H100"], 8)
WORK = Work(10**8)

MODEL = st.sampled_from(MODELS)
MACHINE = st.builds(Machine, st.sampled_from([*GPUS.values(), *PCIE.values()]), st.integers(1, 16))
WORKS = st.builds(Work, st.floats(1, 1e13), st.integers(1, 10**6), st.sampled_from(Method), st.booleans())
MORE = st.floats(1, 1000)


def test_nine_in_ten_published_speeds_lie_in_a_range_of_a_factor_of_two() -> None:
    found = [(speed_told(row), row.tokens_per_s) for row in SPEEDS]
    assert len(found) == 59
    assert sum(slow <= measured <= fast for (slow, fast), measured in found) >= 0.93 * len(found)
    assert all(fast / slow <= 2 for (slow, fast), _ in found)


def test_times_of_published_trainings_lie_in_their_range() -> None:
    inside = 0
    for row in SPEEDS:
        machine, done = Machine(row.gpu, row.gpus), row.done
        work = Work(1e12, done.seq_len, done.method, done.rl, done.micro_batch, done.recompute)
        reported = training_s(row.model, work, machine)
        inside += reported.low <= 1e12 / row.tokens_per_s <= reported.high
        assert reported.high / reported.low <= 2
    assert inside >= 0.9 * len(SPEEDS)


def test_the_time_is_the_operations_over_what_the_machine_does() -> None:
    share = 0.55 * 4096 / (4096 + 300)
    matrices_s = 8 * QWEN_8B.params / (989e12 * share)
    attention_s = 8 * 36 * 4096 * 4096 / (989e12 * 0.16)
    middle = (matrices_s + attention_s + 2e-3 * 36 / 4096) / 8
    took = training_s(QWEN_8B, WORK, BOX)
    assert took.low == pytest.approx(1e8 * middle / 1.4)
    assert took.high == pytest.approx(1e8 * middle * 1.4)


def test_gpus_without_a_link_between_them_are_slower_together() -> None:
    cards = replace(BOX, gpu=GPUS["L40S"], count=2)
    alone, two = (training_s(QWEN_8B, WORK, replace(cards, count=count)).low for count in (1, 2))
    assert two == pytest.approx(alone / 2 / 0.6)


@PROPERTY
@given(MODEL, WORKS, MACHINE, MORE)
def test_more_tokens_never_take_less_time(model: Model, work: Work, machine: Machine, more: float) -> None:
    took = training_s(model, work, machine)
    longer = training_s(model, replace(work, tokens=work.tokens * more), machine)
    assert took.low <= took.expected * (1 + 1e-9)
    assert took.expected <= took.high * (1 + 1e-9)
    assert took.low <= longer.low
    assert took.high <= longer.high


@PROPERTY
@given(MODEL, WORKS, MACHINE)
def test_rl_never_makes_it_shorter_and_lora_never_longer(model: Model, work: Work, machine: Machine) -> None:
    def high(of: Work, on: Machine) -> float:
        return training_s(model, of, on).high

    assert high(replace(work, rl=True), machine) > high(replace(work, rl=False), machine)
    assert high(replace(work, method=Method.LORA), machine) < high(replace(work, method=Method.FULL), machine)


@pytest.mark.parametrize("ends", [(2, 1), (-1, 1), (0, float("inf")), (float("nan"), 1)])
def test_what_is_no_range_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="not a range"):
        Between(*ends)


@pytest.mark.parametrize("tokens", [0, -1, float("inf"), float("nan")])
def test_work_of_no_amount_is_refused(tokens: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Work(tokens)

"""Time and money of a stated amount of training."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.core.cost import SHARES, START_S, Between, Machine, Work, operations, share_of_peak, time_s, usd
from prime_train.core.gpus import GPUS, PCIE
from prime_train.core.memory import Method
from prime_train.core.model_table import MODELS, Model
from tests.core.given import PROPERTY

SPEEDS = json.loads((Path(__file__).parent.parent / "data" / "training_speeds.json").read_text())
QWEN_8B = next(model for model in MODELS if model.name == "Qwen3-8B")
BOX = Machine(GPUS["H100"], 8, usd_per_hour=20.0, spot=False)
WORK = Work(10**8)

MODEL = st.sampled_from(MODELS)
MACHINE = st.builds(Machine, st.sampled_from([*GPUS.values(), *PCIE.values()]), st.integers(1, 16), st.floats(0.01, 500), st.booleans())
WORKS = st.builds(Work, st.floats(1, 1e13), st.integers(1, 10**6), st.sampled_from(Method), st.booleans())
MORE = st.floats(1, 1000)


def share_reached(row: dict[str, Any]) -> float:
    shape = (row["params"], row["layers"], 1, row["heads"], row["heads"], row["head_dim"], 1, 1)
    model = Model(row["model"], *shape, active=row["active"])
    done = operations(model, Work(1, row["seq_len"])) * row["tokens_per_s_per_gpu"]
    return float(done / (GPUS[row["gpu"]].tflops * 10**12))


def test_no_published_speed_is_slower_than_the_slow_end() -> None:
    reached = [share_reached(row) for row in SPEEDS if not row["rl"]]
    assert len(reached) == 56
    assert min(reached) >= SHARES[False, False].low


def test_on_h100_none_is_faster_than_the_fast_end() -> None:
    assert max(share_reached(row) for row in SPEEDS if row["gpu"] == "H100") <= SHARES[False, False].high


def test_published_rl_lies_in_its_range() -> None:
    reached = [share_reached(row) for row in SPEEDS if row["rl"]]
    assert len(reached) == 2
    assert all(SHARES[True, True].low <= share <= SHARES[True, True].high for share in reached)


def test_rl_takes_6_to_9_times_as_long_as_the_help_says() -> None:
    times = [SHARES[False, moe].expected / SHARES[True, moe].expected for moe in (False, True)]
    assert [round(each) for each in times] == [6, 9]


def test_the_time_is_the_operations_over_what_the_machine_does() -> None:
    peak_s = 10**8 * (6 * QWEN_8B.params + 12 * 36 * 4096 * 4096) / (8 * 989e12)
    took = time_s(QWEN_8B, WORK, BOX)
    assert took.low == pytest.approx(START_S.low + peak_s / 0.5)
    assert took.high == pytest.approx(START_S.high + peak_s / 0.2)
    assert usd(took, BOX).low == pytest.approx(took.low / 3600 * 20)


def test_gpus_without_a_link_between_them_may_be_slower() -> None:
    cards = replace(BOX, gpu=GPUS["L40S"])
    assert share_of_peak(QWEN_8B, WORK, cards) == Between(0.10, 0.50)
    assert share_of_peak(QWEN_8B, WORK, replace(cards, count=1)) == Between(0.20, 0.50)


@PROPERTY
@given(MODEL, WORKS, MACHINE, MORE)
def test_more_tokens_never_cost_less_nor_does_a_higher_price(model: Model, work: Work, machine: Machine, more: float) -> None:
    took = time_s(model, work, machine)
    longer = time_s(model, replace(work, tokens=work.tokens * more), machine)
    dearer = replace(machine, usd_per_hour=machine.usd_per_hour * more)
    assert took.low <= took.expected * (1 + 1e-9)
    assert took.expected <= took.high * (1 + 1e-9)
    assert took.low <= longer.low
    assert took.high <= longer.high
    assert usd(took, machine).low <= usd(took, dearer).low
    assert usd(took, machine).high <= usd(took, dearer).high


@PROPERTY
@given(MODEL, WORKS, MACHINE)
def test_spot_and_rl_never_make_it_shorter_and_lora_never_longer(model: Model, work: Work, machine: Machine) -> None:
    def high(of: Work, on: Machine) -> float:
        return time_s(model, of, on).high

    assert high(work, replace(machine, spot=True)) > high(work, replace(machine, spot=False))
    assert high(replace(work, rl=True), machine) > high(replace(work, rl=False), machine)
    assert high(replace(work, method=Method.LORA), machine) < high(replace(work, method=Method.FULL), machine)


@pytest.mark.parametrize("ends", [(2, 1), (-1, 1), (0, float("inf")), (float("nan"), 1)])
def test_what_is_no_range_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="no range"):
        Between(*ends)


@pytest.mark.parametrize("tokens", [0, -1, float("inf"), float("nan")])
def test_work_of_no_amount_is_refused(tokens: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Work(tokens)

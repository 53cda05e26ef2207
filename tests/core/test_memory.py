"""GPU memory: what is counted, what is estimated, and what was measured."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.core.memory import (
    GIB,
    Logits,
    Method,
    Need,
    Phase,
    Serving,
    Training,
    Use,
    kv_bytes,
    rl_need,
    rl_trainers,
    serving_need,
    trained_params,
    training_need,
)
from prime_train.core.model_table import MODELS, Model
from prime_train.core.models import sized, understand
from tests.core.given import PROPERTY

PEAKS = Path(__file__).parent.parent / "data" / "memory_peaks.json"
SHAPE = ("params", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied", "active", "experts", "experts_used")
HOW = ("seq_len", "micro_batch", "weight_bytes", "gradient_bytes", "state_bytes", "recompute", "lora_rank", "foreach", "sharded")
TODAY = {"prime-rl", "torchtitan", "torchtune", "fsdp_qlora"}
"""Trainers that shard each layer for itself and keep their memory in one piece."""


@dataclass(frozen=True)
class Peak:
    """A published one, and what we say of it."""

    row: dict[str, Any]

    @property
    def need(self) -> Need:
        shape = {name: self.row[name] for name in SHAPE if name in self.row}
        how = {name: self.row[name] for name in HOW}
        training = Training(method=Method(self.row["method"]), logits=Logits[self.row["logits"]], **how)
        return training_need(Model(self.row["model"], **shape), training, self.row["gpus"])

    @property
    def bytes(self) -> float:
        return float(self.row["peak_gib"] * GIB)

    @property
    def is_above(self) -> bool:
        return self.bytes > self.need.high

    @property
    def is_below(self) -> bool:
        return self.bytes < self.need.low


PUBLISHED = [Peak(row) for row in json.loads(PEAKS.read_text())]


def model(name: str) -> Model:
    found = understand(name)
    assert found is not None
    return found


QWEN_8B = model("Qwen3-8B")
MODEL = st.sampled_from(MODELS)
TRAINING = st.builds(
    Training,
    method=st.sampled_from(Method),
    seq_len=st.integers(1, 10**6),
    micro_batch=st.integers(1, 64),
    weight_bytes=st.sampled_from([2, 4]),
    recompute=st.booleans(),
    logits=st.sampled_from(Logits),
    foreach=st.booleans(),
    sharded=st.booleans(),
)
COUNT = st.integers(1, 64)


# --------------------------------------------------------------------------------------------------------------------- the band


def test_published_peaks_lie_in_the_band_but_for_those_the_docstring_names() -> None:
    above = Counter(peak.row["trainer"] for peak in PUBLISHED if peak.is_above)
    assert len(PUBLISHED) == 79
    assert sum(above.values()) == 10
    assert sum(peak.is_below for peak in PUBLISHED) == 2
    assert not TODAY & set(above)


def test_what_prime_rl_measured_is_met_closely() -> None:
    told = [peak.bytes / peak.need.peak.total for peak in PUBLISHED if peak.row["trainer"] == "prime-rl" and peak.row["quality"] == "A"]
    assert len(told) >= 15
    assert min(told) >= 0.85
    assert max(told) <= 1.15


def test_a_doubt_widens_the_band() -> None:
    guess = replace(QWEN_8B, guessed=True)
    sure, unsure = (training_need(each, Training(), 8) for each in (QWEN_8B, guess))
    assert unsure.peak == sure.peak
    assert unsure.high > sure.high
    assert unsure.low < sure.low


# ------------------------------------------------------------------------------------------------------------- what is counted


def test_full_training_in_32_bit_takes_16_bytes_a_parameter() -> None:
    use = training_need(QWEN_8B, Training(), 1).peak
    assert use.phase is Phase.PASS
    assert use.counted == 16 * QWEN_8B.params


def test_lora_has_gradients_and_states_of_its_adapters_only() -> None:
    lora = Training(method=Method.LORA, lora_rank=8)
    use = training_need(QWEN_8B, lora, 1).peak
    assert use.weights == 4 * QWEN_8B.params
    assert use.gradients + use.optimizer == 12 * trained_params(QWEN_8B, lora)


def test_the_size_of_a_known_adapter() -> None:
    # Rank 8 on all seven matrices of Llama 3 8B has 20,971,520 parameters.
    assert trained_params(model("Llama-3.1-8B"), Training(method=Method.LORA, lora_rank=8)) == 20_971_520


def test_an_adapter_lies_beside_every_expert() -> None:
    moe, lora = model("Qwen3-30B-A3B"), Training(method=Method.LORA, lora_rank=16)
    experts = 16 * 48 * 128 * 3 * (2048 + 768)
    assert experts < trained_params(moe, lora) < 1.05 * experts


def test_an_optimizer_that_goes_over_all_at_once_needs_a_copy_of_the_gradients() -> None:
    short = Training(seq_len=8, logits=Logits.FUSED, sharded=False)
    plain, foreach = (training_need(QWEN_8B, replace(short, foreach=each), 1) for each in (False, True))
    assert foreach.peak.phase is Phase.STEP
    assert foreach.peak.total - plain.uses[1].total == pytest.approx(4 * QWEN_8B.params)


def test_a_token_in_the_cache_takes_what_servers_say() -> None:
    assert kv_bytes(model("Llama-2-7b"), Serving()) == 512 * 1024
    assert kv_bytes(model("Llama-2-70b"), Serving(), 4) == 80 * 1024


def test_heads_that_are_fewer_than_the_gpus_are_copied() -> None:
    assert kv_bytes(model("Qwen2.5-1.5B"), Serving(), 8) == kv_bytes(model("Qwen2.5-1.5B"), Serving(), 2)


def test_a_server_of_an_8b_model_needs_its_weights_a_cache_and_some_gib() -> None:
    # vLLM tells 14.96 GiB of weights, 1.26 of activations and 1.79 outside of torch.
    use = serving_need(model("Llama-3-8B"), Serving(seq_len=8192, sequences=1), 1).peak
    assert use.weights / GIB == pytest.approx(14.96, abs=0.01)
    assert use.kv_cache / GIB == 1.0
    assert (use.activations + use.rest) / GIB == pytest.approx(1.26 + 1.79, rel=0.15)


# --------------------------------------------------------------------------------------------------------------------- RL


def test_half_of_the_gpus_train_and_the_others_serve() -> None:
    need = rl_need(QWEN_8B, Training(), Serving(), 8)
    assert [use.phase for use in need.uses] == [Phase.PASS, Phase.STEP, Phase.SERVING]
    assert need.uses[0] == training_need(QWEN_8B, Training(), 4).uses[0]
    assert need.uses[2] == serving_need(QWEN_8B, Serving(), 4).peak
    assert [rl_trainers(count) for count in (1, 2, 3, 8)] == [1, 1, 1, 4]


def test_a_single_gpu_does_both_at_once() -> None:
    alone = rl_need(QWEN_8B, Training(), Serving(), 1).peak
    trains, serves = training_need(QWEN_8B, Training(), 1).peak, serving_need(QWEN_8B, Serving(), 1).peak
    assert alone.total == pytest.approx(trains.total + serves.total)


# --------------------------------------------------------------------------------------------------------------- what must hold


@PROPERTY
@given(MODEL, TRAINING, COUNT, COUNT)
def test_more_gpus_never_need_more_of_each(model: Model, training: Training, one: int, other: int) -> None:
    few, many = sorted((one, other))
    for need in (training_need(model, training, few), rl_need(model, training, Serving(), few)):
        assert need.low <= need.peak.total <= need.high
    assert training_need(model, training, many).high <= training_need(model, training, few).high
    assert serving_need(model, Serving(), many).high <= serving_need(model, Serving(), few).high
    assert rl_need(model, training, Serving(), many).high <= rl_need(model, training, Serving(), few).high * (1 + 1e-9)


@PROPERTY
@given(MODEL, TRAINING, COUNT)
def test_what_asks_for_more_never_needs_less(model: Model, training: Training, gpus: int) -> None:
    needed = training_need(model, training, gpus).high
    for changes in ({"seq_len": training.seq_len + 1}, {"micro_batch": training.micro_batch + 1}, {"weight_bytes": 4}, {"sharded": False}):
        more = replace(training, **changes)
        if changes != {"sharded": False}:
            assert training_need(model, more, gpus).high >= needed
    adapters = replace(training, method=Method.LORA)
    assert training_need(model, adapters, gpus).high <= training_need(model, replace(training, method=Method.FULL), gpus).high * 1.001


@pytest.mark.parametrize("changes", [{"seq_len": 0}, {"micro_batch": 0}, {"lora_rank": -1}])
def test_a_training_of_nothing_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Training(**changes)  # type: ignore[arg-type]


def test_parts_are_told_one_by_one() -> None:
    use = Use(Phase.PASS, weights=1, logits=2)
    assert use.parts["weights"] == 1
    assert sum(use.parts.values()) == use.total == 3


def test_a_mixture_of_experts_gathers_all_experts_of_a_layer() -> None:
    moe, dense = model("Qwen3-30B-A3B"), sized("3B")
    assert dense is not None
    assert training_need(moe, Training(), 8).peak.gathered > 4 * training_need(dense, Training(), 8).peak.gathered

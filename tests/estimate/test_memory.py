"""GPU memory: counted parts, estimated parts, and measurements."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.job import ModelTraining, rl_trainers
from prime_train.estimate.memory.phases import (
    GIB,
    Logits,
    Method,
    Phase,
    Recompute,
    Serving,
    Sharding,
    Training,
    Use,
    kv_bytes,
    serving_need,
    trained_params,
    training_need,
)
from prime_train.estimate.memory.serving import share
from prime_train.estimate.memory.software_factors import (
    LEARNED,
    UNKNOWN_MARGIN,
    Learned,
    MadeWith,
    Measure,
    software,
)
from prime_train.estimate.models.dimensions import MODELS, Model
from prime_train.estimate.models.lookup import resolve_model, sized
from tests.benchmarks.memory.fit import learn
from tests.benchmarks.memory.held_out import halves, need_of, reported, sources_left_out
from tests.benchmarks.memory.model import accelerate, covered, score, unsloth
from tests.benchmarks.memory.row_parser import Row
from tests.benchmarks.memory.rows import estimate, rows
from tests.core.given import PROPERTY

PUBLISHED = rows()
TRAINED = [row for row in PUBLISHED if row.is_training]


def model(name: str) -> Model:
    found = resolve_model(name)
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
    recompute=st.sampled_from(Recompute),
    logits=st.sampled_from(Logits),
    foreach=st.booleans(),
    sharding=st.sampled_from(Sharding),
)
COUNT = st.integers(1, 64)
SEVERAL = st.integers(4, 64)
"""Numbers of GPUs between which shards are gathered; a single GPU gathers none."""


# ------------------------------------------------------------------------------------------------------------
# the band


def test_published_peaks_are_reported_as_closely_as_promised() -> None:
    found = score((estimate(row), row.peak) for row in PUBLISHED)
    assert found.rows == 166
    assert found.median <= 0.04
    assert found.within_20 >= 0.97
    assert found.below_10 <= 0.02


def test_the_constants_are_those_that_the_peaks_teach() -> None:
    learned = learn(PUBLISHED, passes=20)
    for constant, value in LEARNED.shared.items():
        assert learned.shared[constant] == pytest.approx(value, rel=0.02)
    for trainer, times in learned.times.items():
        assert all(
            LEARNED.times[trainer].get(constant, 1) == pytest.approx(value, abs=0.04)
            for constant, value in times.items()
        )


@pytest.fixture(scope="module")
def left_out() -> list[tuple[Row, Learned]]:
    return list(sources_left_out(PUBLISHED))


def test_peaks_of_trainers_that_nothing_was_learned_from_are_reported_as_closely(
    left_out: list[tuple[Row, Learned]],
) -> None:
    found = score(reported(left_out))
    assert found.rows == 166
    assert found.median <= 0.08
    assert found.within_20 >= 0.9
    assert found.below_10 <= 0.05
    others = (score((way(row), row.peak) for row in PUBLISHED) for way in (unsloth, accelerate))
    assert all(found.median < other.median / 4 for other in others)


def test_half_of_the_peaks_tell_the_other_half() -> None:
    found = score(pair for half in halves(PUBLISHED, splits=4) for pair in reported(half))
    assert found.median <= 0.06
    assert found.within_20 >= 0.92
    assert found.below_10 <= 0.05


def test_nine_in_ten_published_peaks_lie_in_the_band_whether_learned_from_or_not(
    left_out: list[tuple[Row, Learned]],
) -> None:
    for held in (
        [(row, LEARNED) for row in TRAINED],
        [(row, learned) for row, learned in left_out if row.is_training],
    ):
        inside, ratio = covered((need_of(row, learned), row.peak) for row, learned in held)
        assert inside >= 0.9
        assert ratio <= 1.6


NEEDED_FIELDS = ("id", "kind", "source", "quality", "peak_gib")


@pytest.mark.parametrize(
    "field", sorted({field for row in PUBLISHED for field in row.stated} - set(NEEDED_FIELDS))
)
@pytest.mark.parametrize("value", [None, "unknown", 0])
def test_whatever_a_row_leaves_unsaid_it_is_still_reported(field: str, value: object) -> None:
    for row in PUBLISHED[::9]:
        assert estimate(Row({**row.stated, field: value})) > 0


def test_a_row_that_says_only_its_model_is_reported_as_full_training_in_16_bit() -> None:
    row = Row({"id": "x", "kind": "memory-train", "model": "Qwen/Qwen3-8B", "peak_gib": 100, "source": "y"})
    assert estimate(row) > 2 * QWEN_8B.params + 2 * QWEN_8B.params + 8 * QWEN_8B.params


@pytest.mark.parametrize(
    "message",
    [{"method": "DoRA"}, {"method": "RL", "lora_rank": 8}, {"method": "SFT", "trainable_params": 10**7}],
)
def test_a_row_of_any_adapter_is_no_full_training(message: dict[str, object]) -> None:
    row = {
        "id": "x",
        "kind": "memory-train",
        "model": "Qwen/Qwen3-8B",
        "params": 8_190_735_360,
        "peak_gib": 20,
        "source": "y",
    }
    assert not Row({**row, **message}).is_full
    assert Row({**row, "method": "SFT"}).is_full


def test_what_is_estimated_of_an_unknown_trainer_is_reported_with_a_margin() -> None:
    unknown = software(MadeWith("a trainer of one's own"))
    assert unknown.full_logit_bytes == UNKNOWN_MARGIN * LEARNED.shared["wide"]
    assert unknown.rest_gib == UNKNOWN_MARGIN * LEARNED.shared["reserved"]


def test_what_was_cached_for_batches_of_other_lengths_counts_unless_only_tensors_do() -> None:
    reserved, allocated = (
        software(MadeWith("x", measure, ragged=True)) for measure in (Measure.RESERVED, Measure.ALLOCATED)
    )
    assert reserved.loss_fragments > 2
    assert allocated.loss_fragments == 1


def test_a_doubt_widens_the_band() -> None:
    guess = replace(QWEN_8B, guessed=True)
    sure, unsure = (training_need(each, Training(), 8) for each in (QWEN_8B, guess))
    assert unsure.peak == sure.peak
    assert unsure.high > sure.high
    assert unsure.low < sure.low


# ------------------------------------------------------------------------------------------------------------
# what is counted


def test_full_training_in_32_bit_takes_16_bytes_a_parameter() -> None:
    use = training_need(QWEN_8B, Training(), 1).peak
    assert use.phase is Phase.LOSS
    assert use.counted == 16 * QWEN_8B.params


def test_lora_has_gradients_and_states_of_its_adapters_only() -> None:
    lora = Training(method=Method.LORA, lora_rank=8)
    use = training_need(QWEN_8B, lora, 1).peak
    assert use.weights == 4 * (QWEN_8B.params + trained_params(QWEN_8B, lora))
    assert use.gradients + use.optimizer == 12 * trained_params(QWEN_8B, lora)


def test_the_size_of_a_known_adapter() -> None:
    # Rank 8 on all seven matrices of Llama 3 8B has 20,971,520 parameters.
    assert trained_params(model("Llama-3.1-8B"), Training(method=Method.LORA, lora_rank=8)) == 20_971_520


def test_an_adapter_lies_beside_every_expert() -> None:
    moe, lora = model("Qwen3-30B-A3B"), Training(method=Method.LORA, lora_rank=16)
    experts = 16 * 48 * 128 * 3 * (2048 + 768)
    assert experts < trained_params(moe, lora) < 1.05 * experts


def test_an_optimizer_that_goes_over_all_at_once_needs_a_copy_of_the_gradients() -> None:
    short = Training(seq_len=8, logits=Logits.FUSED, sharding=Sharding.NONE)
    plain, foreach = (training_need(QWEN_8B, replace(short, foreach=each), 1) for each in (False, True))
    assert foreach.peak.phase is Phase.STEP
    assert foreach.peak.total - plain.uses[2].total == pytest.approx(4 * QWEN_8B.params)


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
    assert (use.activations + use.logits + use.rest) / GIB == pytest.approx(1.26 + 1.79, rel=0.15)


@pytest.mark.parametrize(
    ("sharding", "weights", "gradients", "states"),
    [
        (Sharding.NONE, 1, 1, 1),
        (Sharding.ZERO1, 1, 1, 8),
        (Sharding.ZERO2, 1, 8, 8),
        (Sharding.ZERO3, 8, 8, 8),
        (Sharding.FSDP1, 8, 8, 8),
        (Sharding.FSDP2, 8, 8, 8),
    ],
)
def test_what_is_divided_among_the_gpus(
    sharding: Sharding, weights: int, gradients: int, states: int
) -> None:
    use = training_need(QWEN_8B, Training(sharding=sharding), 8).uses[0]
    complete = QWEN_8B.params
    assert (use.weights, use.gradients, use.optimizer) == (
        4 * complete / weights,
        4 * complete / gradients,
        8 * complete / states,
    )


def test_what_is_offloaded_takes_no_memory_of_the_gpu() -> None:
    states = training_need(QWEN_8B, Training(optimizer_offloaded=True), 1).peak
    nothing = training_need(QWEN_8B, Training(states_offloaded=True), 1).peak
    assert (states.optimizer, states.gradients) == (0, 4 * QWEN_8B.params)
    assert nothing.counted == 0
    assert nothing.gathered > 2 * QWEN_8B.embedding_params


def test_borders_of_layers_are_what_offloading_activations_saves() -> None:
    # prime-rl's Qwen3-0.6B at 65,536 tokens: 19.56 GiB against 16.08; 2 B x layers x hidden for each token
    # are 3.50.
    small, long = model("Qwen3-0.6B"), Training(seq_len=65_536, logits=Logits.FUSED)
    kept, offloaded = (
        training_need(small, replace(long, activations_offloaded=each), 1).peak.total
        for each in (False, True)
    )
    assert (kept - offloaded) / GIB == pytest.approx(19.56 - 16.08, rel=0.05)


def test_embedding_and_head_stay_wide_where_the_rest_is_quantised() -> None:
    use = training_need(QWEN_8B, Training(method=Method.LORA, weight_bytes=0.5, adapter_bytes=0), 1).peak
    assert use.weights == 0.5 * (QWEN_8B.params - QWEN_8B.embedding_params) + 2 * QWEN_8B.embedding_params


def test_a_trainer_that_loads_the_complete_model_first_has_its_peak_there() -> None:
    lora = Training(
        method=Method.LORA,
        weight_bytes=2,
        sharding=Sharding.FSDP1,
        seq_len=64,
        software=software(MadeWith("lit-gpt")),
    )
    assert training_need(QWEN_8B, lora, 4).peak.phase is Phase.LOAD
    assert Phase.LOAD not in [use.phase for use in training_need(QWEN_8B, lora, 1).uses]


def test_attention_without_flash_takes_memory_by_the_square_of_the_length() -> None:
    def activations(seq_len: int, *, eager: bool) -> float:
        return training_need(
            QWEN_8B, Training(seq_len=seq_len, recompute=Recompute.NONE, eager_attention=eager), 1
        ).peak.activations

    extra = [activations(length, eager=True) - activations(length, eager=False) for length in (1024, 2048)]
    assert extra[1] == pytest.approx(4 * extra[0])


# ------------------------------------------------------------------------------------------------------------
# a server


def test_a_servers_share_leaves_the_rest_to_its_cache() -> None:
    # vLLM told 58.97 GiB of cache on each of two GPUs: 0.9 of 79.22 GiB less 7.48, 1.26 and 3.58.
    held = share(model("Llama-3-8B"), Serving(), 2, utilization=0.9, gpu_bytes=79.22 * GIB)
    cache = held.kv_tokens * kv_bytes(model("Llama-3-8B"), Serving(), 2)
    assert cache / GIB == pytest.approx(58.97, rel=0.05)
    assert held.sequences(8192) == held.kv_tokens / 8192


def test_a_share_that_is_too_small_holds_no_sequence() -> None:
    held = share(QWEN_8B, Serving(), 1, utilization=0.1, gpu_bytes=80 * GIB)
    assert held.kv_tokens < 0
    assert held.sequences(1024) == 0


# ------------------------------------------------------------------------------------------------------------
# RL


def test_half_of_the_gpus_train_and_the_others_serve() -> None:
    job = ModelTraining(QWEN_8B, Training(), 1e8, rl=True).on(8)
    assert [use.phase for use in job.phases.uses] == [Phase.LOSS, Phase.BACKWARD, Phase.STEP, Phase.SERVING]
    assert job.phases.uses[0] == training_need(QWEN_8B, Training(), 4).uses[0]
    assert job.phases.uses[3] == serving_need(QWEN_8B, Serving(), 4).peak
    assert [rl_trainers(count) for count in (1, 2, 3, 8)] == [1, 1, 1, 4]


def test_a_single_gpu_does_both_at_once() -> None:
    job = ModelTraining(QWEN_8B, Training(), 1e8, rl=True).on(1)
    trains, serves = training_need(QWEN_8B, Training(), 1).peak, serving_need(QWEN_8B, Serving(), 1).peak
    assert job.gpu_need(1).expected_bytes == pytest.approx(trains.total + serves.total)


# ------------------------------------------------------------------------------------------------------------
# what must hold


@PROPERTY
@given(MODEL, TRAINING, SEVERAL, SEVERAL)
def test_more_gpus_never_need_more_of_each(model: Model, training: Training, one: int, other: int) -> None:
    few, many = sorted((one, other))
    need = training_need(model, training, few)
    assert need.low <= need.peak.total <= need.high
    assert training_need(model, training, many).high <= training_need(model, training, few).high
    assert serving_need(model, Serving(), many).high <= serving_need(model, Serving(), few).high
    fewer, more = (
        ModelTraining(model, training, 1e8, rl=True).on(count).gpu_need(count) for count in (few, many)
    )
    assert fewer.low_bytes <= fewer.expected_bytes <= fewer.high_bytes
    assert more.high_bytes <= fewer.high_bytes * (1 + 1e-9)


@PROPERTY
@given(MODEL, TRAINING, COUNT)
def test_what_asks_for_more_never_needs_less(model: Model, training: Training, gpus: int) -> None:
    needed = training_need(model, training, gpus).high
    longer, more_at_once = (
        replace(training, seq_len=training.seq_len + 1),
        replace(training, micro_batch=training.micro_batch + 1),
    )
    for more in (longer, more_at_once, replace(training, weight_bytes=4)):
        assert training_need(model, more, gpus).high >= needed
    full = replace(training, method=Method.FULL, recompute=Recompute.FULL)
    assert (
        training_need(model, replace(full, method=Method.LORA), gpus).high
        <= training_need(model, full, gpus).high * 1.001
    )


@pytest.mark.parametrize("changes", [{"seq_len": 0}, {"micro_batch": 0}, {"lora_rank": -1}])
def test_a_training_of_nothing_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Training(**changes)  # type: ignore[arg-type]


def test_a_pipelines_stage_keeps_its_weights_and_gradients_complete_until_the_last_micro_batch() -> None:
    staged = Training(sharding=Sharding.FSDP2, pipeline_parallel=4, micro_batch=4)
    use = training_need(QWEN_8B, staged, 16).uses[0]
    assert use.gathered == 6 * QWEN_8B.params / 4
    assert use.logits == training_need(QWEN_8B, Training(micro_batch=1), 16).uses[0].logits


def test_tensor_parallelism_does_not_divide_what_goes_into_the_head() -> None:
    alone, parallel = (
        training_need(QWEN_8B, Training(tensor_parallel=degree), 8).uses[0].logits for degree in (1, 8)
    )
    assert parallel == pytest.approx(alone / 8 + 4096 * 8 * QWEN_8B.hidden)


def test_a_cap_on_logits_is_kept_for_their_gradient() -> None:
    plain = training_need(QWEN_8B, Training(), 1).uses[0].logits
    capped = training_need(replace(QWEN_8B, capped=True), Training(), 1).uses[0].logits
    assert capped - plain == 3 * 4096 * QWEN_8B.vocab


def test_parts_are_reported_one_by_one() -> None:
    use = Use(Phase.LOSS, weights=1, logits=2)
    assert use.parts["weights"] == 1
    assert sum(use.parts.values()) == use.total == 3


def test_a_mixture_of_experts_gathers_all_experts_of_a_layer() -> None:
    moe, dense = model("Qwen3-30B-A3B"), sized("3B")
    assert dense is not None
    assert (
        training_need(moe, Training(), 8).peak.gathered
        > 3 * training_need(dense, Training(), 8).peak.gathered
    )

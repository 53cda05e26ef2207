"""Which model a name refers to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.models.dimensions import MODELS, SAME_AS, Model
from prime_train.estimate.models.lookup import resolve_model, resolve_path, sized
from tests.core.given import PROPERTY


def counted(model: Model) -> int:
    """Return the parameters that a token passes, by the shape alone: embedding, attention and MLP, without
    norms, biases and routers.
    """
    attention = 2 * model.hidden * (model.attention_width + model.kv_width)
    return model.embedding_params + model.layers * (
        attention + (3 if model.gated else 2) * model.hidden * model.ffn
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_size_and_shape_of_the_table_agree(model: Model) -> None:
    assert model.active == pytest.approx(counted(model), rel=0.005)
    assert model.is_moe == (model.experts > 1)
    assert model.params > model.embedding_params


def test_the_table_has_each_name_once() -> None:
    names = [model.name.lower() for model in MODELS] + [other.lower() for other in SAME_AS]
    assert len(names) == len(set(names))
    assert set(SAME_AS.values()) <= {model.name for model in MODELS}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Qwen/Qwen3-8B", "Qwen3-8B"),
        ("qwen3-8b", "Qwen3-8B"),
        ("Qwen/Qwen3-4B-Instruct-2507", "Qwen3-4B"),
        ("PrimeIntellect/Qwen3-0.6B-Reverse-Text-SFT", "Qwen3-0.6B"),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen3-30B-A3B"),
        ("Qwen/Qwen2.5-7B-Instruct-1M", "Qwen2.5-7B"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "Llama-3-8B"),
        ("meta-llama/Llama-3.2-1B", "Llama-3.2-1B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "DeepSeek-R1-Distill-Qwen-1.5B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "Qwen2.5-7B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B"),
        ("PrimeIntellect/INTELLECT-3", "GLM-4.5-Air"),
        ("microsoft/phi-4", "Phi-4"),
        ("./models/SmolLM2-135M/", "SmolLM2-135M"),
        ("mistralai/Magistral-Small-2507", "Mistral-Small-24B"),
        ("stabilityai/stablelm-2-1_6b", "stablelm-2-1_6b"),
        ("axolotl-quants/Llama-4-Scout-17B-16E-Linearized-bnb-nf4-bf16", "Llama-4-Scout-17B-16E"),
    ],
)
def test_a_model_is_known_by_the_name_of_its_base(name: str, known: str) -> None:
    found = resolve_model(name)
    assert found is not None
    assert (found.name, found.guessed) == (known, False)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("saves/qwen3-4b/full/sft", "Qwen3-4B"),
        ("/data/Qwen2.5-7B-Instruct/checkpoint-500/", "Qwen2.5-7B"),
        ("Qwen/Qwen3-8B", "Qwen3-8B"),
        ("out/sft", None),
        ("", None),
    ],
)
def test_a_model_that_was_saved_before_is_known_by_a_folder_of_its_path(path: str, known: str | None) -> None:
    found = resolve_path(path)
    assert (found.name if found is not None else None) == known


@pytest.mark.parametrize(
    ("name", "params", "active"),
    [
        ("acme/Foo-8B-v2", 8e9, 8e9),
        ("acme/foo_0.6b", 0.6e9, 0.6e9),
        ("EleutherAI/pythia-160m", 160e6, 160e6),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 80e9, 3e9),
        ("Qwen3-8B-pruned-4B", 8e9, 8e9),
        ("7B", 7e9, 7e9),
    ],
)
def test_another_name_is_understood_by_the_size_in_it(name: str, params: float, active: float) -> None:
    found = resolve_model(name)
    assert found is not None
    assert (found.params, found.active, found.guessed) == (params, active, True)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "mystery-model",
        "/",
        "microsoft/Phi-4-mini-instruct",
        "zai-org/GLM-9.1-Flash",
        "0B",
        "99999B",
        "x4bit",
        "3B-A8B",
    ],
)
def test_a_name_that_tells_no_size_is_not_guessed_at(name: str) -> None:
    assert resolve_model(name) is None


@PROPERTY
@given(st.text(max_size=60))
def test_any_text_is_answered(name: str) -> None:
    found = resolve_model(name)
    assert found is None or 0 < found.active <= found.params


@PROPERTY
@given(st.floats(0.01, 900))
def test_a_size_keeps_its_size(billions: float) -> None:
    found = sized(f"{billions:.2f}B")
    assert found is not None
    assert found.params == pytest.approx(billions * 1e9, rel=0.5 if billions < 0.02 else 0.05, abs=6e6)
    assert found.layer_params >= 0

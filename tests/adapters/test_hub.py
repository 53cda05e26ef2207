"""Reading models from the hub: what it reports, what it does not, and how it fails."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.estimate.models import lookup as models
from prime_train.planning.hugging_face_hub import Hub
from tests.fakes.http import ALWAYS, CutRequest, Response
from tests.fakes.hub import QWEN3_8B, TOKEN, FakeHub, Repo

ID = "Qwen/Qwen3-8B"
SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1000,
}
SEEING = Repo(
    "Qwen/Qwen2.5-VL-3B-Instruct",
    {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "vision_config": {},
        "text_config": {**SMALL, "max_position_embeddings": 512},
    },
    1_000_000,
    pipeline="image-text-to-text",
    template=[{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "{{ tools }}"}],
)
GATED = replace(QWEN3_8B, id="meta-llama/Llama-3.1-8B", gated="manual")


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeHub]:
    with FakeHub(QWEN3_8B, SEEING, GATED) as fake:
        yield fake


def hub(fake: FakeHub, token: str = "") -> Hub:
    return Hub(fake.url, token=token, pause_s=0.0)


def test_a_model_is_reported_with_the_shape_that_the_table_has(fake: FakeHub) -> None:
    reported = hub(fake).model(ID)
    assert reported is not None
    assert (reported.gated, reported.readable, reported.architecture, reported.context, reported.tools) == (
        "no",
        True,
        "Qwen3ForCausalLM",
        40_960,
        True,
    )
    table = models.resolve_model(ID)
    assert reported.shape is not None
    assert table is not None
    for name in ("params", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied"):
        assert getattr(reported.shape, name) == getattr(table, name), name


def test_a_mixture_of_experts_has_the_shape_that_the_table_has() -> None:
    config = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "vocab_size": 151_936,
    }
    with FakeHub(Repo("Qwen/Qwen3-30B-A3B", config, 30_532_122_624)) as fake:
        reported = hub(fake).model("Qwen/Qwen3-30B-A3B")
    table = models.resolve_model("Qwen/Qwen3-30B-A3B")
    assert reported is not None
    assert reported.shape is not None
    assert table is not None
    assert (reported.shape.ffn, reported.shape.experts, reported.shape.experts_used) == (
        table.ffn,
        table.experts,
        table.experts_used,
    )
    assert reported.shape.active == pytest.approx(table.active, rel=0.02)


def test_a_vision_language_model_is_read_in_its_part_for_text(fake: FakeHub) -> None:
    reported = hub(fake).model(SEEING.id)
    assert reported is not None
    assert (reported.is_vision_language, reported.context, reported.tools) == (True, 512, True)
    assert reported.shape is not None
    assert reported.shape.layers == 2


def test_a_gated_model_is_known_but_not_read(fake: FakeHub) -> None:
    for token in ("", TOKEN):
        reported = hub(fake, token).model(GATED.id)
        assert reported is not None
        assert (reported.gated, reported.readable, reported.architecture, reported.shape) == (
            "manual",
            False,
            "Qwen3ForCausalLM",
            None,
        )
    fake.let_in = True
    reported = hub(fake, TOKEN).model(GATED.id)
    assert reported is not None
    assert reported.readable


@pytest.mark.parametrize("token", ["", TOKEN])
def test_a_model_that_is_not_there_is_none(fake: FakeHub, token: str) -> None:
    assert hub(fake, token).model("nobody/nothing") is None


@pytest.mark.parametrize(
    "model_id", ["", "a/b/c", "../../api", "a b", "Qwen/..", "x" * 300, "Qwen/Qwen3?a=b"]
)
def test_what_is_no_id_is_refused_and_not_requested(fake: FakeHub, model_id: str) -> None:
    with pytest.raises(PermanentError, match="is not a model id"):
        hub(fake).model(model_id)
    assert fake.requests == []


@pytest.mark.parametrize(
    ("status", "error"),
    [(503, TemporaryError), (429, TemporaryError), (None, TemporaryError), (400, PermanentError)],
)
def test_failures_are_reported_by_their_kind(
    fake: FakeHub, status: int | None, error: type[Exception]
) -> None:
    """A `status` of None means that no response arrives."""
    fake.fail(CutRequest() if status is None else Response(status, b"<html>unwell</html>"), times=ALWAYS)
    with pytest.raises(error):
        hub(fake).model(ID)


@pytest.mark.parametrize(
    "more",
    [
        {"sha": "main/../.."},
        {"id": 5},
        {"config": None},
        {"config": {"architectures": "x", "tokenizer_config": 3}},
        {"safetensors": {"total": "many"}},
        {"gated": None},
    ],
)
def test_an_unusual_answer_is_read_as_far_as_it_goes(more: dict[str, Any]) -> None:
    with FakeHub(replace(QWEN3_8B, more=more)) as fake:
        reported = hub(fake).model(ID)
    assert reported is not None
    assert reported.id == ID


def test_an_answer_that_is_no_object_is_not_understood() -> None:
    with FakeHub() as fake:
        fake.fail(Response(200, b"<html>unwell</html>"))
        with pytest.raises(TemporaryError, match="cannot be parsed"):
            hub(fake).model(ID)


def test_the_environment_says_where_and_as_whom(fake: FakeHub) -> None:
    fake.let_in = True
    reported = Hub.of({"HF_ENDPOINT": fake.url, "HF_TOKEN": f" {TOKEN}\n"}).model(GATED.id)
    assert reported is not None
    assert reported.readable


def test_an_address_that_is_none_is_reported_with_its_variable() -> None:
    with pytest.raises(PermanentError, match=r"HF_ENDPOINT is 'hub\.example', which is not an http"):
        Hub.of({"HF_ENDPOINT": "hub.example"})

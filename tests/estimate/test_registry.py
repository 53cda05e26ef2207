"""The registry of models: the shipped file is valid, and agrees with the table from which memory is
estimated.
"""

import json
from importlib import resources
from typing import Any

import pytest

from prime_train.estimate.models import lookup as models
from prime_train.estimate.models import registry
from prime_train.estimate.models.hardware_presets import PRESETS, preset, similar
from prime_train.estimate.models.registry import ModelEntry, ModelKind, Registry

TEXT = resources.files("prime_train.estimate.models").joinpath(registry.FILE).read_text("utf-8")
KNOWN = registry.parse(TEXT)


def changed(**first: object) -> str:
    """Return the file with its first model changed."""
    data = json.loads(TEXT)
    data["models"][0] |= first
    return json.dumps(data)


def test_the_file_is_written_as_it_is_read() -> None:
    assert registry.parse(registry.dumped(KNOWN)) == KNOWN
    assert json.loads(registry.dumped(KNOWN)) == json.loads(TEXT)


@pytest.mark.parametrize("entry", KNOWN.models, ids=lambda entry: entry.id)
def test_a_model_has_what_the_table_of_shapes_and_the_list_of_vllm_say(entry: ModelEntry) -> None:
    assert all(issue.date <= entry.read <= KNOWN.date for issue in entry.issues)
    shape = models.resolve_model(entry.id)
    if entry.kind is ModelKind.PUZZLE:
        assert (shape, KNOWN.vllm.kind_of(entry.architecture)) == (None, None)
        return
    assert shape is not None
    if entry.kind is ModelKind.TEXT:
        assert not shape.guessed
        assert entry.params == pytest.approx(shape.params, rel=0.01)
    assert KNOWN.vllm.kind_of(entry.architecture) is entry.kind


@pytest.mark.parametrize(
    "first",
    [
        {"params": 0},
        {"params": "many"},
        {"kind": "video"},
        {"gated": "perhaps"},
        {"read": "yesterday"},
        {"id": "../etc/passwd"},
        {"extra": 1},
        {"issues": [{"date": "2026-1-1", "text": "x"}]},
        {"id": "zzz/last"},
    ],
)
def test_what_is_no_registry_is_refused(first: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        registry.parse(changed(**first))


def test_a_model_is_found_whatever_its_capitals() -> None:
    found = KNOWN.entry("qwen/qwen3-8b")
    assert found is not None
    assert found.id == "Qwen/Qwen3-8B"
    assert KNOWN.entry("Qwen/Qwen3-8") is None
    assert KNOWN.similar("Qwen/Qwen3-8")[0] == "Qwen/Qwen3-8B"
    assert KNOWN.similar("") == ()


def test_an_architecture_is_of_one_kind_only() -> None:
    vllm = KNOWN.vllm
    assert not set(vllm.text) & set(vllm.vision_language)
    assert not set(vllm.dropped) & {*vllm.text, *vllm.vision_language}


def test_every_model_is_there_once() -> None:
    with pytest.raises(ValueError, match="without duplicates"):
        Registry(date=KNOWN.date, vllm=KNOWN.vllm, models=(KNOWN.models[0], KNOWN.models[0]))


@pytest.mark.parametrize(
    ("text", "kind", "gb"),
    [
        ("h100-80gb", "H100_80GB", 80),
        ("H100_80GB", "H100_80GB", 80),
        ("RTX 4090", "RTX4090_24GB", 24),
        ("gh200_96gb", "GH200_96GB", 96),
    ],
)
def test_hardware_goes_by_several_names(text: str, kind: str, gb: int) -> None:
    found = preset(text)
    assert found is not None
    assert (found.kind, found.gb) == (kind, gb)


@pytest.mark.parametrize("text", ["", "h100", "tpu-v5", "H100_8000000GB", "../x", "GH2\n00_96GB"])
def test_what_is_no_hardware_is_distinguished_from_it(text: str) -> None:
    assert preset(text) is None


def test_what_was_meant_is_offered() -> None:
    assert similar("h100-80g")[0] == "h100-80gb"
    assert len(similar("tpu")) == len(PRESETS)

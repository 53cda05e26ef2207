"""Whether a model is suitable, and why not."""

from dataclasses import replace
from importlib import resources

import pytest

from prime_train.estimate.models import registry
from prime_train.estimate.models.hardware_presets import preset
from prime_train.estimate.models.registry import ModelKind
from prime_train.planning.suitability import CheckResult, Known, SuitabilityCheck, Wanted, checks

REGISTRY = registry.parse(
    resources.files("prime_train.estimate.models").joinpath(registry.FILE).read_text("utf-8")
)
ENTRY = REGISTRY.entry("Qwen/Qwen3-8B")
assert ENTRY is not None
KNOWN = Known.of(ENTRY)


def checked(known: Known, wanted: Wanted | None = None) -> dict[str, SuitabilityCheck]:
    return {check.name: check for check in checks(known, wanted or Wanted(), REGISTRY.vllm)}


def test_a_good_model_has_nothing_against_it() -> None:
    found = checked(KNOWN, Wanted(preset("h100-80gb"), gpus=4, seq_len=8192, tools=True))
    assert {check.result for check in found.values()} == {CheckResult.YES}
    assert set(found) == {
        "access",
        "kind",
        "vLLM",
        "tools",
        "context",
        "memory, serving",
        "memory, LoRA",
        "memory, full",
    }


@pytest.mark.parametrize(
    ("change", "wanted", "name", "verdict", "words"),
    [
        ({"gated": "auto", "readable": False}, Wanted(), "access", CheckResult.NO, "agree to its terms"),
        ({"gated": "manual", "readable": False}, Wanted(), "access", CheckResult.NO, "HF_TOKEN"),
        ({"gated": "manual", "readable": True}, Wanted(), "access", CheckResult.YES, "your token has access"),
        ({"gated": "manual"}, Wanted(), "access", CheckResult.NOTE, "with access"),
        ({"kind": ModelKind.VISION_LANGUAGE}, Wanted(), "kind", CheckResult.NO, "vision-language"),
        (
            {"kind": ModelKind.VISION_LANGUAGE},
            Wanted(vision=True),
            "kind",
            CheckResult.YES,
            "vision-language",
        ),
        (
            {"architecture": "MllamaForConditionalGeneration"},
            Wanted(),
            "vLLM",
            CheckResult.NO,
            "up to vLLM 0.10.2",
        ),
        (
            {"architecture": "BertForSequenceClassification"},
            Wanted(),
            "vLLM",
            CheckResult.NO,
            "does not generate text",
        ),
        ({"architecture": "Qwen9ForCausalLM"}, Wanted(), "vLLM", CheckResult.NOTE, "newer ones may"),
        ({"architecture": ""}, Wanted(), "vLLM", CheckResult.NOTE, "is unknown"),
        ({"tools": False}, Wanted(tools=True), "tools", CheckResult.NO, "not support tools"),
        ({"tools": False}, Wanted(), "tools", CheckResult.NOTE, "not support tools"),
        ({"tools": None}, Wanted(tools=True), "tools", CheckResult.NOTE, "is unknown"),
        ({}, Wanted(seq_len=50_000), "context", CheckResult.NO, "request 40960 or less"),
        ({"context": None}, Wanted(seq_len=50_000), "context", CheckResult.NOTE, "unknown"),
        ({}, Wanted(preset("rtx4090")), "memory, serving", CheckResult.NO, "does not fit"),
        ({}, Wanted(preset("h100-80gb")), "memory, full", CheckResult.NOTE, "does not fit"),
        ({"shape": None}, Wanted(preset("h100-80gb")), "memory", CheckResult.NOTE, "is unknown"),
    ],
)
def test_each_point_is_reported_with_its_reason(
    change: dict[str, object], wanted: Wanted, name: str, verdict: CheckResult, words: str
) -> None:
    check = checked(replace(KNOWN, **change), wanted)[name]  # type: ignore[arg-type]  # fields of different kinds
    assert (check.result, words in check.message) == (verdict, True), check.message

"""Checks point by point, with reasons, whether a model suits an intended use. The source of the facts does
not matter here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from prime_train.estimate.memory.phases import GIB, Method, Need, Serving, serving_need, training_need
from prime_train.estimate.memory.training_setup import SEQ_LEN, usual_training
from prime_train.estimate.models import lookup as models
from prime_train.estimate.models.dimensions import Model
from prime_train.estimate.models.hardware_presets import Preset
from prime_train.estimate.models.known_failures import failures_of
from prime_train.estimate.models.registry import ModelEntry, ModelKind, Vllm
from prime_train.runs.forecast import Fit

_NOT_GENERATING = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForMaskedLM",
    "ForQuestionAnswering",
)


class CheckResult(StrEnum):
    YES = "yes"
    NOTE = "note"
    """Something worth knowing, or something that could not be determined."""
    NO = "no"


@dataclass(frozen=True)
class SuitabilityCheck:
    """What was checked, and what came out. `need_gib`: of a check of memory, the ends of the band of what
    each GPU needs.
    """

    name: str
    result: CheckResult
    message: str
    need_gib: tuple[float, float] | None = None


@dataclass(frozen=True)
class Known:
    """What is known about a model. None and empty mean unknown. `readable`: the current user can access its
    files.
    """

    id: str
    gated: str
    readable: bool | None
    kind: ModelKind | None
    architecture: str
    context: int | None
    tools: bool | None
    shape: Model | None
    vllm: str = ""

    @classmethod
    def of(cls, entry: ModelEntry) -> "Known":
        shape = models.resolve_model(entry.id)
        return cls(
            entry.id,
            entry.gated,
            None,
            entry.kind,
            entry.architecture,
            entry.context,
            entry.tools,
            shape,
            entry.vllm,
        )


@dataclass(frozen=True)
class Wanted:
    """The intended use. `seq_len` 0 means any length the model supports; `tools`: the model must support tool
    calls; `vision`: it is to be trained as a vision-language model.
    """

    preset: Preset | None = None
    gpus: int = 1
    seq_len: int = 0
    tools: bool = False
    vision: bool = False


def checks(known: Known, wanted: Wanted, vllm: Vllm) -> tuple[SuitabilityCheck, ...]:
    found = [
        _access(known),
        _kind(known, wanted, vllm),
        _served(known, vllm),
        _tools(known, wanted),
        _context(known, wanted),
    ]
    failing = [
        SuitabilityCheck("known failure", CheckResult.NO, one.message) for one in failures_of(known.id)
    ]
    return (*found, *failing, *_memory(known, wanted))


def _access(known: Known) -> SuitabilityCheck:
    if known.readable is False:
        how = "agree to its terms" if known.gated == "auto" else "ask for access"
        return SuitabilityCheck(
            "access",
            CheckResult.NO,
            f"gated, and your account has no access: {how} on its page, and set HF_TOKEN",
        )
    if known.gated == "no":
        return SuitabilityCheck("access", CheckResult.YES, "open to everyone")
    if known.readable:
        return SuitabilityCheck("access", CheckResult.YES, f"gated ({known.gated}); your token has access")
    return SuitabilityCheck(
        "access", CheckResult.NOTE, f"gated ({known.gated}): HF_TOKEN must belong to an account with access"
    )


def _kind(known: Known, wanted: Wanted, vllm: Vllm) -> SuitabilityCheck:
    kind = known.kind or vllm.kind_of(known.architecture)
    if kind is ModelKind.PUZZLE:
        return SuitabilityCheck(
            "kind",
            CheckResult.NOTE,
            "solves puzzles, and generates no text: trained by its own code, such as kind trm",
        )
    if kind is ModelKind.VISION_LANGUAGE and wanted.vision:
        return SuitabilityCheck("kind", CheckResult.YES, "vision-language")
    if kind is ModelKind.VISION_LANGUAGE:
        message = (
            "vision-language: text trainers reject it or need extra settings; use a text model unless you "
            "need images"
        )
        return SuitabilityCheck("kind", CheckResult.NO, message)
    return (
        SuitabilityCheck("kind", CheckResult.YES, "text")
        if kind
        else SuitabilityCheck("kind", CheckResult.NOTE, "unknown")
    )


def _served(known: Known, vllm: Vllm) -> SuitabilityCheck:
    name = known.architecture
    if known.kind is ModelKind.PUZZLE:
        return SuitabilityCheck("vLLM", CheckResult.NOTE, "no server is needed, and none serves it")
    if not name:
        return SuitabilityCheck("vLLM", CheckResult.NOTE, "the architecture is unknown")
    if name in vllm.dropped:
        return SuitabilityCheck(
            "vLLM", CheckResult.NO, f"{name} was supported up to vLLM {vllm.dropped[name]}, but no longer"
        )
    if vllm.kind_of(name) is not None:
        return SuitabilityCheck(
            "vLLM", CheckResult.YES, f"{name}" + (f", from vLLM {known.vllm} on" if known.vllm else "")
        )
    if name.endswith(_NOT_GENERATING):
        return SuitabilityCheck("vLLM", CheckResult.NO, f"{name} does not generate text")
    return SuitabilityCheck(
        "vLLM", CheckResult.NOTE, f"{name} is not in the list of vLLM {vllm.version}; newer ones may serve it"
    )


def _tools(known: Known, wanted: Wanted) -> SuitabilityCheck:
    if known.kind is ModelKind.PUZZLE:
        return SuitabilityCheck(
            "tools", CheckResult.NO if wanted.tools else CheckResult.NOTE, "it has no chat template"
        )
    match known.tools:
        case True:
            return SuitabilityCheck("tools", CheckResult.YES, "its chat template supports tools")
        case False:
            return SuitabilityCheck(
                "tools",
                CheckResult.NO if wanted.tools else CheckResult.NOTE,
                "its chat template does not support tools",
            )
        case None:
            return SuitabilityCheck(
                "tools", CheckResult.NOTE, "it is unknown whether its chat template supports tools"
            )


def _context(known: Known, wanted: Wanted) -> SuitabilityCheck:
    if known.context is None:
        return SuitabilityCheck("context", CheckResult.NOTE, "unknown")
    if wanted.seq_len > known.context:
        message = (
            f"{known.context:,} tokens, less than the requested {wanted.seq_len:,}; "
            "request "
            f"{known.context} or less"
        )
        return SuitabilityCheck("context", CheckResult.NO, message)
    return SuitabilityCheck("context", CheckResult.YES, f"{known.context:,} tokens")


def _memory(known: Known, wanted: Wanted) -> Iterator[SuitabilityCheck]:
    """Yield the memory checks. Only serving can fail, as nothing works without it; training is possible on
    more GPUs or with LoRA.
    """
    if wanted.preset is None:
        return
    if known.shape is None:
        why = "it is no language model" if known.kind is ModelKind.PUZZLE else "its architecture is unknown"
        yield SuitabilityCheck("memory", CheckResult.NOTE, f"{why}, so memory cannot be estimated")
        return
    seq_len = wanted.seq_len or min(SEQ_LEN, known.context or SEQ_LEN)
    needs = (
        ("serving", serving_need(known.shape, Serving(seq_len), wanted.gpus)),
        ("LoRA", training_need(known.shape, usual_training(Method.LORA, seq_len), wanted.gpus)),
        ("full", training_need(known.shape, usual_training(Method.FULL, seq_len), wanted.gpus)),
    )
    for name, need in needs:
        yield _fitting(f"memory, {name}", need, wanted, must=name == "serving")


def _fitting(name: str, need: Need, wanted: Wanted, *, must: bool) -> SuitabilityCheck:
    assert wanted.preset is not None
    found = need.on(wanted.gpus).fit(wanted.preset.gb)
    band = (need.low / GIB, need.high / GIB)
    needed = (
        f"{need.low / GIB:.1f} to {need.high / GIB:.1f} GiB on each of {wanted.gpus} x {wanted.preset.gb} GB"
    )
    match found:
        case Fit.YES:
            return SuitabilityCheck(name, CheckResult.YES, needed, band)
        case Fit.TIGHT:
            return SuitabilityCheck(name, CheckResult.NOTE, f"{needed}: tight", band)
        case Fit.UNLIKELY | Fit.NO:
            verdict = "does not fit" if found is Fit.NO else "probably does not fit"
            return SuitabilityCheck(
                name, CheckResult.NO if must else CheckResult.NOTE, f"{needed}: {verdict}", band
            )

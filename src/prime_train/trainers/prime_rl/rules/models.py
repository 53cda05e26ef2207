"""Rules about models and GPUs in a prime-rl config: vision-language models, and kernels that only some GPUs
run.
"""

import re
from collections.abc import Iterator

from prime_train.estimate import gpus
from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

HOPPER = frozenset(("H100", "H200", "H800", "H20", "GH200"))
BLACKWELL = frozenset(("B100", "B200", "B300", "GB200", "GB300"))
"""GPUs of the Blackwell generation for data centres; the desktop GPUs have other kernels."""

_MODEL = "trainer.model"
_SEES = r"(?i)(?:^|[-_/.\d])VL(?:[-_.]|$)|llava|pixtral|internvl|paligemma|idefics|[-_]vision(?:[-_]|$)"
_SEEING = {"impl": "custom", "optimization_dtype": "bfloat16", "reduce_dtype": "bfloat16"}
_RUN_ON = {"flash_attention_3": HOPPER, "flash_attention_4": HOPPER | BLACKWELL}


RULES = PrimeRlRules()


def sees_unsaid(settings: ReceivedConfig) -> bool:
    """Return whether the model's name is that of a vision-language model and no setting says so."""
    name = settings.text(f"{_MODEL}.name")
    is_given = settings.has("model.vlm") or settings.has(f"{_MODEL}.vlm")
    return name is not None and re.search(_SEES, name) is not None and not is_given


@RULES.error(
    "PR370",
    "a vision-language model that is configured as a text model",
    why="Without [model.vlm] the vision encoder is not found: the model does not load, or its weights reach "
    "the server under wrong names.",
    fix="add [model.vlm]",
)
def sees(settings: ReceivedConfig) -> Iterator[Violation]:
    name = settings.text(f"{_MODEL}.name")
    if name is not None and settings.is_complete and sees_unsaid(settings):
        fix = (
            "add [model.vlm] with vision_encoder_attr and language_model_attr, or use the text model of the "
            "family"
        )
        yield violation(
            settings.place(f"{_MODEL}.name"),
            f"{name[:80]} is a vision-language model, but is configured as a text model",
            fix,
        )


@RULES.error(
    "PR371",
    "a vision-language model with settings that it does not support",
    why="prime-rl rejects the config: vLLM serves such models in bfloat16, and only prime-rl's own model "
    "code can locate the encoder.",
    fix='write impl = "custom" and both dtypes "bfloat16"',
)
def vision_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    part = next((name for name in ("model.vlm", f"{_MODEL}.vlm") if settings.has(name)), None)
    if part is None or not settings.is_complete:
        return
    unsaid = []
    for name, value in _SEEING.items():
        where, wanted = settings.given_at(f"{_MODEL}.{name}"), f'{_MODEL}.{name} = "{value}"'
        if settings.value(f"{_MODEL}.{name}") != value and where is not None:
            yield violation(where, f"a vision-language model needs {wanted}")
        elif where is None:
            unsaid.append(wanted)
    if unsaid:
        yield violation(
            tuple(part.split(".")), f"a vision-language model needs {', '.join(unsaid)}", on_key=True
        )
    if (settings.integer(f"{_MODEL}.cp") or 1) > 1 and settings.value(f"{_MODEL}.cp_style") != "ulysses":
        yield violation(
            settings.place(f"{_MODEL}.cp"),
            'context parallelism of a vision-language model needs cp_style = "ulysses"',
        )
    frozen = f"{part}.freeze_vision_encoder"
    if settings.value(frozen) is False and settings.has(f"{_MODEL}.lora"):
        yield violation(
            settings.place(frozen),
            "LoRA freezes everything except its adapters, including the vision encoder",
            "delete it, or train without LoRA",
        )


@RULES.warning(
    "PR372",
    "an attention kernel that the GPU does not support",
    why="The kernel is built for other GPUs: the trainer crashes in its first step.",
    fix='write attn = "auto"',
)
def kernels(settings: ReceivedConfig) -> Iterator[Violation]:
    attention = settings.text(f"{_MODEL}.attn") or ""
    if settings.spec is None or attention not in _RUN_ON:
        return
    others = _unfit(settings, _RUN_ON[attention])
    if others:
        fix = (
            'write attn = "auto", which selects a kernel that the GPU supports, or remove these GPUs '
            "from hardware.gpus"
        )
        yield violation(
            settings.place(f"{_MODEL}.attn"), f"{attention} does not run on {', '.join(others)}", fix
        )


@RULES.warning(
    "PR373",
    "a number format that the GPU does not support",
    why="The kernels are built for other GPUs: the trainer crashes in its first step.",
    fix="delete the quantization setting, or remove these GPUs from hardware.gpus",
)
def numbers(settings: ReceivedConfig) -> Iterator[Violation]:
    kind = settings.text(f"{_MODEL}.quantization.type")
    if settings.spec is None or kind not in ("fp8", "mxfp8"):
        return
    others = _unfit(settings, BLACKWELL if kind == "mxfp8" else HOPPER | BLACKWELL)
    if others:
        yield violation(
            settings.place(f"{_MODEL}.quantization.type"),
            f"{kind} training is not supported on {', '.join(others)}",
            "remove these GPUs from hardware.gpus",
        )


def _unfit(settings: ReceivedConfig, fit: frozenset[str]) -> list[str]:
    """Return the allowed GPU kinds that are known and not among the fitting ones."""
    kinds = settings.spec.hardware.gpus if settings.spec is not None else ()
    return [
        kind for kind in kinds if gpus.facts(kind) is not None and gpus.plain(gpus.family(kind)) not in fit
    ]

"""Rules about what axolotl and LLaMA-Factory refuse when they read their settings (TR471 to TR474): pairs of
settings, from axolotl 067b021c8 and LLaMA-Factory ff6d4d12e.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prime_train.estimate.memory.training_setup import Sharding
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.hf.settings import (
    AXOLOTL,
    LLAMA_FACTORY,
    Program,
    TrainerSettings,
    trainer_settings,
)

TOPIC = "transformers and TRL"
_SIZES = ("micro_batch_size", "gradient_accumulation_steps", "batch_size")
_QUANTISED = ("load_in_4bit", "load_in_8bit")
_WHY = "The program stops when it reads its settings, on a machine that is already paid for."


RULES = Rules(TOPIC, requires="hf")


@dataclass(frozen=True)
class Refusal:
    """Settings that a program refuses together. `at` is the one to change; `message` says what is wrong, and
    `fix` what to write.
    """

    at: str
    message: str
    fix: str
    refused: Callable[[TrainerSettings], bool]


def _by_name(given: TrainerSettings, name: str, *allowed: str) -> bool:
    """Return whether a setting has a value other than those allowed."""
    value = given.value(name)
    return given.is_set(name) and value not in allowed


_AXOLOTL = (
    Refusal(
        "gradient_accumulation_steps",
        "gradient_accumulation_steps and batch_size exclude each other",
        "delete batch_size",
        lambda given: given.is_set("gradient_accumulation_steps") and given.is_set("batch_size"),
    ),
    Refusal(
        "warmup_ratio",
        "warmup_steps and warmup_ratio exclude each other",
        "keep one of them",
        lambda given: bool(given.number("warmup_steps")) and bool(given.number("warmup_ratio")),
    ),
    Refusal(
        "save_steps",
        "save_steps is for save_strategy: steps",
        "write save_strategy: steps, or delete save_steps",
        lambda given: bool(given.number("save_steps")) and _by_name(given, "save_strategy", "steps"),
    ),
    Refusal(
        "save_steps",
        "saves_per_epoch and save_steps exclude each other",
        "keep one of them",
        lambda given: bool(given.number("saves_per_epoch")) and bool(given.number("save_steps")),
    ),
    Refusal(
        "eval_steps",
        "eval_steps is for eval_strategy: steps",
        "write eval_strategy: steps, or delete eval_steps",
        lambda given: bool(given.number("eval_steps")) and _by_name(given, "eval_strategy", "steps"),
    ),
    Refusal(
        "eval_steps",
        "evals_per_epoch and eval_steps exclude each other",
        "keep one of them",
        lambda given: bool(given.number("evals_per_epoch")) and bool(given.number("eval_steps")),
    ),
    Refusal(
        "val_set_size",
        "evaluations need a val_set_size above 0, or test_datasets",
        "write val_set_size: 0.05",
        lambda given: (
            given.number("val_set_size") == 0
            and bool(given.number("eval_steps"))
            and not given.is_set("test_datasets")
            and given.value("eval_strategy") not in ("no", False)
        ),
    ),
    Refusal(
        "sample_packing",
        "sample_packing does not work with rl",
        "delete sample_packing",
        lambda given: given.is_on("sample_packing") and given.is_set("rl"),
    ),
    Refusal(
        "adapter",
        "load_in_4bit and load_in_8bit need an adapter",
        "write adapter: qlora, or load the model in 16 bits",
        lambda given: any(given.is_on(name) for name in _QUANTISED) and not given.is_set("adapter"),
    ),
    Refusal(
        "adapter",
        "adapter: qlora needs load_in_4bit: true, and not load_in_8bit",
        "write load_in_4bit: true",
        lambda given: (
            given.text("adapter") == "qlora"
            and (given.is_on("load_in_8bit") or not given.is_on("load_in_4bit"))
        ),
    ),
    Refusal(
        "deepspeed",
        "deepspeed and fsdp exclude each other",
        "keep one of them",
        lambda given: given.is_set("deepspeed") and given.is_set("fsdp"),
    ),
)
_FACTORY = (
    Refusal(
        "quantization_bit",
        "a quantised model can only be trained with finetuning_type lora or oft",
        "write finetuning_type: lora",
        lambda given: given.is_set("quantization_bit") and _by_name(given, "finetuning_type", "lora", "oft"),
    ),
    Refusal(
        "adapter_name_or_path",
        "adapters are only for finetuning_type: lora",
        "delete adapter_name_or_path",
        lambda given: given.is_set("adapter_name_or_path") and _by_name(given, "finetuning_type", "lora"),
    ),
    Refusal(
        "pure_bf16",
        "pure_bf16 does not work with DeepSpeed's stage 3",
        "delete pure_bf16, and write bf16: true",
        lambda given: given.is_on("pure_bf16") and _is_zero3(given),
    ),
    Refusal(
        "use_unsloth",
        "use_unsloth does not work with DeepSpeed's stage 3",
        "delete use_unsloth",
        lambda given: given.is_on("use_unsloth") and _is_zero3(given),
    ),
    Refusal(
        "deepspeed",
        "GaLore and APOLLO do not work with DeepSpeed",
        "delete deepspeed",
        lambda given: given.is_set("deepspeed") and (given.is_on("use_galore") or given.is_on("use_apollo")),
    ),
    Refusal(
        "neat_packing",
        "neat_packing is only for stage: sft",
        "delete neat_packing",
        lambda given: given.is_on("neat_packing") and _by_name(given, "stage", "sft"),
    ),
    Refusal(
        "load_best_model_at_end",
        "stages rm and ppo do not support load_best_model_at_end",
        "delete load_best_model_at_end",
        lambda given: given.is_on("load_best_model_at_end") and given.text("stage") in ("rm", "ppo"),
    ),
)


def _is_zero3(given: TrainerSettings) -> bool:
    return given.is_set("deepspeed") and given.spread.sharding is Sharding.ZERO3


def _refused(subject: Subject, program: Program, refusals: tuple[Refusal, ...]) -> Iterator[Violation]:
    given = trainer_settings(subject)
    if given is None or given.program is not program:
        return
    for one in refusals:
        if one.refused(given):
            yield Violation((one.at,), one.message, one.fix, document="trainer")


@RULES.error("TR471", "settings that axolotl refuses", why=_WHY, fix="change one of them")
def axolotl(subject: Subject) -> Iterator[Violation]:
    yield from _refused(subject, AXOLOTL, _AXOLOTL)
    given = trainer_settings(subject)
    if given is None or given.program is not AXOLOTL or subject.is_by_flags:
        return
    if sum(given.is_set(name) for name in _SIZES) < 2:
        message = "axolotl needs two of micro_batch_size, gradient_accumulation_steps and batch_size"
        yield Violation(
            (_SIZES[0],),
            message,
            "write micro_batch_size and gradient_accumulation_steps",
            document="trainer",
        )


@RULES.error("TR472", "settings that LLaMA-Factory refuses", why=_WHY, fix="change one of them")
def llama_factory(subject: Subject) -> Iterator[Violation]:
    yield from _refused(subject, LLAMA_FACTORY, _FACTORY)


@RULES.error(
    "TR474",
    "DeepSpeed and FSDP at once",
    why="The Trainer raises an error when it is constructed.",
    fix="keep one of them",
)
def both(subject: Subject) -> Iterator[Violation]:
    given = trainer_settings(subject)
    if given is None or given.program is AXOLOTL:
        return
    if given.is_set("deepspeed") and given.is_set("fsdp"):
        yield Violation(("fsdp",), "deepspeed and fsdp exclude each other", document="trainer")

"""What the settings of programs on the Trainer of transformers say, in the words of every trainer."""

import re

from prime_train.estimate.memory.training_setup import Method, Recompute
from prime_train.spec.rule import Subject
from prime_train.trainers.hf.settings import (
    AXOLOTL,
    LLAMA_FACTORY,
    LLAMA_FACTORY_1,
    SWIFT,
    TRL,
    TrainerSettings,
    trainer_settings,
)
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.view import Reader, Saving, Setting, TrainingSettings

PROMPT, ANSWER = 512, 256
"""TRL's defaults for the lengths of GRPO's prompts and answers, in tokens."""
SAVE_STEPS = 500
_PAIRED = frozenset(("dpo", "rm", "reward", "orpo", "simpo", "ipo", "cpo"))
"""Kinds of training whose samples are pairs of answers."""
_LENGTHS = (
    "max_length",
    "max_seq_length",
    "max_seq_len",
    "model_max_length",
    "block_size",
    "seq_len",
    "seq_length",
)
_WEIGHTS_ONLY = "save_only_model"


def settings(subject: Subject) -> TrainingSettings | None:
    """Return the settings of a subject; None if it has none of the Trainer."""
    given = trainer_settings(subject)
    if given is None:
        return None
    read = Reader(given.document)
    return TrainingSettings(
        given.program.title,
        model=_model(given, read),
        method=method(given),
        optimizer=read.text("optim", "optimizer", "optim_config.name", default="adamw_torch"),
        seq_len=length(given),
        micro_batch=micro_batch(given),
        accumulation=read.integer("gradient_accumulation_steps", default=1),
        recompute=recompute(given),
        sharding=Setting(given.spread.sharding),
        saving=_saving(given, read),
        processes=processes(subject),
        steps=read.maybe("max_steps"),
        epochs=read.number("num_train_epochs", "num_epochs"),
        resume=read.text("resume_from_checkpoint"),
    )


def kind_of_training(given: TrainerSettings) -> str:
    """Return the kind of training, such as sft or dpo; empty if the settings do not say."""
    named = given.text("stage") or given.text("rl") or given.text("rlhf_type")
    if given.text("pref_loss") in ("orpo", "simpo"):
        named = given.text("pref_loss")
    if named:
        return named.lower()
    found = re.search(r"(?<![a-z])(sft|dpo|kto|grpo|rloo|reward|orpo|cpo|ppo)(?![a-z])", given.command)
    return found[1] if found is not None else ""


def is_rl(given: TrainerSettings) -> bool:
    kinds = ("grpo", "rloo", "gdpo", "ppo")
    return given.integer("num_generations") is not None or kind_of_training(given) in kinds


def length(given: TrainerSettings) -> Setting[int]:
    """Return the tokens of the longest sequence."""
    read = Reader(given.document)
    if is_rl(given) and given.program is TRL:
        prompt = read.integer("max_prompt_length", default=PROMPT)
        answer = read.integer("max_completion_length", default=ANSWER)
        return Setting(prompt.value + answer.value, answer.path, answer.place)
    return read.integer(given.program.seq_len, *_LENGTHS, default=given.program.seq_len_default)


def micro_batch(given: TrainerSettings) -> Setting[int]:
    """Return the sequences that a GPU processes at once; a pair of answers counts as two."""
    size = Reader(given.document).integer(
        given.program.micro_batch, "train_batch_size", default=given.program.micro_batch_default
    )
    pairs = 2 if kind_of_training(given) in _PAIRED else 1
    return Setting(size.value * pairs, size.path, size.place)


def method(given: TrainerSettings) -> Setting[Method]:
    """Return whether all weights are trained, or a part of them: adapters, or some layers."""
    read = Reader(given.document)
    if given.program in (LLAMA_FACTORY, SWIFT):
        name = next((name for name in _KINDS if given.text(name)), _KINDS[0])
        kind = given.text(name) or "lora"
        is_full = kind == "full" and not given.is_on("use_badam")
        return read.at(name, Method.FULL if is_full else Method.LORA)
    if given.program is LLAMA_FACTORY_1:
        return read.at("peft_config", Method.LORA if given.is_set("peft_config") else Method.FULL)
    if given.program is AXOLOTL:
        return read.at("adapter", Method.LORA if given.is_set("adapter") else Method.FULL)
    names = ("lora_r", "lora_rank", "load_in_4bit", "load_in_8bit")
    adapting = next((name for name in names if given.is_set(name)), "")
    if given.value("use_peft") is False or not (given.is_on("use_peft") or adapting):
        return read.at("use_peft", Method.FULL)
    return read.at("use_peft" if given.is_on("use_peft") else adapting, Method.LORA)


_KINDS = ("finetuning_type", "tuner_type", "train_type", "sft_type")
"""Settings of LLaMA-Factory and ms-swift that say what is trained."""


def recompute(given: TrainerSettings) -> Setting[Recompute]:
    read = Reader(given.document)
    for name in ("activation_checkpointing", "fsdp_activation_checkpointing"):
        if given.is_on("fsdp_config", name):
            return read.at(f"fsdp_config.{name}", Recompute.FULL)
    if given.is_on("disable_gradient_checkpointing"):
        return read.at("disable_gradient_checkpointing", Recompute.NONE)
    if given.value("enable_activation_checkpointing") is False:
        return read.at("enable_activation_checkpointing", Recompute.NONE)
    chosen = given.value("gradient_checkpointing")
    if chosen is None:
        return Setting(Recompute.FULL if given.program.recompute else Recompute.NONE)
    is_off = chosen is False and given.program is not LLAMA_FACTORY
    return read.at("gradient_checkpointing", Recompute.NONE if is_off else Recompute.FULL)


def _model(given: TrainerSettings, read: Reader) -> Setting[str]:
    name = next((name for name in given.model_names if given.text(name)), "")
    return read.at(name, given.model) if name else Setting("")


def _saving(given: TrainerSettings, read: Reader) -> Saving:
    strategy = read.at("save_strategy", given.value("save_strategy"))
    every = read.maybe("save_steps")
    is_by_epoch = strategy.value in ("epoch", "best") or given.integer("saves_per_epoch") is not None
    known = every.value if every.value is not None else SAVE_STEPS if given.program is not AXOLOTL else None
    return Saving(
        Setting(strategy.value not in (False, "no"), strategy.path, strategy.place),
        Setting(None if is_by_epoch else known, every.path, every.place),
        kept=read.maybe("save_total_limit"),
        weights_only=read.switch(_WEIGHTS_ONLY, default=False),
        folder=read.text("output_dir"),
    )

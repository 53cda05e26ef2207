"""Which trainer's settings a config file or a command has, and what they are.

A command is split into words as a shell does; its settings are flags, or pairs of `part.key=value` as hydra
parses them.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from prime_train.spec.merge import grown
from prime_train.spec.tree import Mapping, Scalar, SourcePosition, Value

ConfigFormat = Literal["", "prime_rl", "areal", "hf", "trm"]
"""The trainer that a config belongs to; empty if it is not a known one."""

COMMAND_CHARS_MAX = 20_000
_HYDRA = re.compile(r"(\+{0,2})([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
NULL = "None"
"""How trainers that have no null of their own spell it in a file or an argument."""
_WORDS: dict[str, Value] = {"true": True, "True": True, "false": False, "False": False, NULL: None}

_PRIME_RL = frozenset(
    ("trainer", "orchestrator", "inference", "deployment", "weight_broadcast", "rollout_transport")
)
_NOT_PRIME_RL = frozenset(("project", "build-system", "tool", "package", "workspace"))
_AREAL = frozenset(("experiment_name", "trial_name"))
_TRM = frozenset(("data_paths", "epochs", "eval_interval", "checkpoint_every_eval"))
_HF = frozenset(
    (
        "save_strategy",
        "save_steps",
        "save_total_limit",
        "save_only_model",
        "eval_strategy",
        "eval_steps",
        "load_best_model_at_end",
        "per_device_train_batch_size",
        "per_device_eval_batch_size",
        "gradient_accumulation_steps",
        "gradient_checkpointing",
        "num_train_epochs",
        "report_to",
        "logging_steps",
        "warmup_ratio",
        "lr_scheduler_type",
        "learning_rate",
        "model_name_or_path",
        "resume_from_checkpoint",
        "num_generations",
        "use_vllm",
        "vllm_mode",
        "max_prompt_length",
        "max_completion_length",
    )
)
_HF_MIN = 3
_AXOLOTL = frozenset(
    (
        *(
            "sequence_len",
            "micro_batch_size",
            "gradient_accumulation_steps",
            "num_epochs",
            "datasets",
            "pretraining_dataset",
            "adapter",
        ),
        *("sample_packing", "val_set_size", "lora_r", "load_in_4bit", "load_in_8bit", "output_dir"),
    )
)
_AXOLOTL_MIN = 3
_LLAMA_FACTORY = frozenset(
    (
        *(
            "finetuning_type",
            "stage",
            "do_train",
            "template",
            "cutoff_len",
            "dataset_dir",
            "quantization_bit",
            "lora_target",
        ),
        *(
            "model_class",
            "peft_config",
            "dist_config",
            "kernel_config",
            "train_dataset",
            "micro_batch_size",
            "tokenized_path",
        ),
    )
)
_LLAMA_FACTORY_MIN = 2
_TRAINED = frozenset(("output_dir", "do_train"))
"""Settings that a file of LLaMA-Factory has if it is about a training; others are for chats, exports and
evaluations.
"""
_HF_FLAGS = frozenset(("save_strategy", "eval_strategy", "evaluation_strategy", "save_only_model"))
"""Settings that only the Trainer has: a script that takes one of them as a flag takes all."""
_MODEL_FLAGS = _HF | {"output_dir", "model"}
"""Settings that others have, too, so that the kind of trainer must be known for them to be the Trainer's."""
_MAY_BE_HF = frozenset(("command", "torchrun", "hf"))
_NOT_HF = frozenset(("base_model", "actor", "data_paths"))
_CONFIG_KEYS = re.compile(r"^\s*\[{0,2}(trainer|budget|orchestrator|experiment_name)\b", re.MULTILINE)
_SPEC = frozenset(("trainer", "budget"))


@lru_cache(maxsize=64)
def words(command: str) -> tuple[str, ...]:
    """Return the words of a command; empty if a shell would refuse the command or it exceeds
    `COMMAND_CHARS_MAX` characters.
    """
    if len(command) > COMMAND_CHARS_MAX:
        return ()
    try:
        return tuple(shlex.split(command.replace("\n", " "), comments=False))
    except ValueError:
        return ()


def flags(command: str) -> Iterator[tuple[str, str]]:
    """Yield the name and value of every --flag, with hyphens as underscores; the value is empty if there is
    none.
    """
    return flags_of(words(command))


def flags_of(split: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the same of a command that is split into words."""
    for at, word in enumerate(split):
        if not word.startswith("--") or word == "--":
            continue
        name, sign, value = word[2:].partition("=")
        after = split[at + 1] if at + 1 < len(split) and not split[at + 1].startswith("-") else ""
        yield name.replace("-", "_"), value if sign else after


def spelling_of(command: str, *names: str) -> str:
    """Return the first of these flags that the command contains, as it is spelt there; empty if there is
    none.
    """
    spelt = (word for name in names for word in (name, name.replace("_", "-")))
    return next((word for word in spelt if f"--{word}" in command), "")


def changes(command: str, config_format: ConfigFormat, place: SourcePosition) -> Mapping:
    """Return the settings with which the command overrides its config, all positioned at `place`."""
    # LLaMA-Factory takes both: flags without a file, and key=value beside one.
    pairs = (*flags(command), *settings(command)) if config_format == "hf" else settings(command)
    return grown(
        place,
        [
            (name.split("."), place, Scalar(place, value, value_of(value) if value else True))
            for name, value in pairs
        ],
    )


def settings(command: str) -> Iterator[tuple[str, str]]:
    """Yield `part.key=value` pairs as hydra parses them."""
    for word in words(command):
        found = _HYDRA.fullmatch(word)
        if found is not None:
            yield found[2], found[3]


def value_of(text: str) -> Value:
    """Return the value of an argument, parsed by its form alone."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


# ------------------------------------------------------------------------------------------------------------
# the format


def format_of_toml(root: Mapping) -> ConfigFormat:
    keys = {entry.key for entry in root.entries}
    return "prime_rl" if keys & _PRIME_RL and not keys & _NOT_PRIME_RL else ""


def looks_like_config(text: str) -> bool:
    """Return whether an unparsable file found in a folder was probably intended as a config; templates and
    manifests are not.
    """
    return _CONFIG_KEYS.search(text) is not None


def is_complete(root: Mapping) -> bool:
    """Return whether a prime-rl file found in a folder is a complete config and not only a part to merge into
    another.
    """
    return root.entry("orchestrator") is not None


def format_of_yaml(root: Mapping) -> ConfigFormat:
    """Return the format of a YAML config; empty for a run's spec and for any other YAML."""
    keys = {entry.key for entry in root.entries}
    if is_spec(root):
        return ""
    if keys >= _AREAL:
        return "areal"
    if keys >= _TRM:
        return "trm"
    return "hf" if _is_of_trainer(keys) else ""


def format_of_command(command: str, kind: str = "") -> ConfigFormat:
    """Return the format of the settings that the command contains, for a command that names no config file;
    empty if it is not known. `kind`: the kind of trainer.
    """
    split = words(command)
    is_trm = any(word.rpartition("/")[2] == "pretrain.py" for word in split) and any(
        word.startswith("data_paths=") for word in split
    )
    if is_trm:
        return "trm"
    if kind == "areal":
        return "areal"
    known = _HF_FLAGS | _MODEL_FLAGS if kind == "hf" else _HF_FLAGS
    return "hf" if kind in _MAY_BE_HF and any(name in known for name, _ in flags(command)) else ""


def _is_of_trainer(keys: set[str]) -> bool:
    """Return whether a file of settings is for the Trainer of transformers, or a program that is built on
    it.
    """
    if "base_model" in keys:
        return len(keys & _AXOLOTL) >= _AXOLOTL_MIN
    if (
        keys & {"model_name_or_path", "model"}
        and keys & _TRAINED
        and len(keys & _LLAMA_FACTORY) >= _LLAMA_FACTORY_MIN
    ):
        return True
    return "output_dir" in keys and len(keys & _HF) >= _HF_MIN and not keys & _NOT_HF


def is_spec(root: Mapping) -> bool:
    """Return whether a file found in a folder is intended as a run's spec."""
    return bool({entry.key for entry in root.entries} & _SPEC)

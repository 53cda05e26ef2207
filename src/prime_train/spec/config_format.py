"""Which trainer's settings a config file or a command has, and what they are.

A command is split into words as a shell does; its settings are flags, or pairs of `part.key=value` as hydra
parses them.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, cast

from prime_train.spec.merge import grown
from prime_train.spec.tree import Mapping, Scalar, SourcePosition, Value, find

ConfigFormat = Literal["", "prime_rl", "prime_rl_sft", "areal", "hf", "torchtitan", "trm", "verl"]
"""The trainer that a config belongs to; empty if it is not a known one."""

COMMAND_CHARS_MAX = 20_000
_HYDRA = re.compile(r"(\+{0,2})([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
NULL = "None"
"""How trainers that have no null of their own spell it in a file or an argument."""
_WORDS: dict[str, Value] = {"true": True, "True": True, "false": False, "False": False, NULL: None}

_PRIME_RL_OWN = frozenset(("trainer", "orchestrator", "rollout_transport"))
"""Sections of prime-rl's reinforcement learning that its supervised training does not have."""
_SFT = frozenset(("max_steps", "ckpt", "optim", "scheduler", "val", "deployment", "output_dir", "tokenizer"))
_TORCHTITAN = frozenset(("model", "training"))
_TORCHTITAN_BESIDE = frozenset(
    ("job", "optimizer", "parallelism", "checkpoint", "activation_checkpoint", "lr_scheduler", "metrics")
)
_RL = "actor_rollout_ref"
_VERL = frozenset(("data", "trainer"))
_VERL_BESIDE = frozenset((_RL, "algorithm", "critic"))
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
_HF_PROGRAMS = frozenset(("axolotl", "llamafactory-cli", "lmf", "trl", "swift", "axolotl.cli.train"))
_MODULES: dict[str, ConfigFormat] = {
    "verl.trainer": "verl",
    "torchtitan.train": "torchtitan",
    "prime_rl.trainer.sft": "prime_rl_sft",
    "prime_rl.entrypoints.sft": "prime_rl_sft",
    "trl.scripts.": "hf",
}
"""Whose settings a command has that starts a module with such a name."""
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
        after = split[at + 1] if at + 1 < len(split) and _is_value(split[at + 1]) else ""
        yield name.replace("-", "_"), value if sign else after


def _is_value(word: str) -> bool:
    return not word.startswith("-") or _FLOAT.fullmatch(word) is not None


def variables(command: str) -> dict[str, str]:
    """Return the environment variables that are set before the program: NAME=value."""
    found: dict[str, str] = {}
    for word in words(command):
        name, sign, value = word.partition("=")
        if word == "env":
            continue
        if not sign or not name.isidentifier():
            break
        found[name] = value
    return found


def spelling_of(command: str, *names: str) -> str:
    """Return the first of these flags that the command contains, as it is spelt there; empty if there is
    none.
    """
    spelt = (word for name in names for word in (name, name.replace("_", "-")))
    return next((word for word in spelt if f"--{word}" in command), "")


def changes(command: str, config_format: ConfigFormat, place: SourcePosition) -> Mapping:
    """Return the settings with which the command overrides its config, all positioned at `place`."""
    pairs = _READ[config_format](command) if config_format in _READ else settings(command)
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


def _flags_and_settings(command: str) -> Iterator[tuple[str, str]]:
    # LLaMA-Factory takes both: flags without a file, and key=value beside one.
    yield from flags(command)
    yield from settings(command)


_READ: dict[ConfigFormat, Callable[[str], Iterator[tuple[str, str]]]] = {
    "hf": _flags_and_settings,
    "torchtitan": flags,
    "prime_rl_sft": flags,
}
"""How the settings in a command are read where they are not KEY=VALUE."""


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
    if keys & _NOT_PRIME_RL:
        return ""
    if keys >= _TORCHTITAN and keys & _TORCHTITAN_BESIDE and isinstance(find(root, ("training",)), Mapping):
        return "torchtitan"
    if _is_sft(root, keys):
        return "prime_rl_sft"
    return "prime_rl" if keys & _PRIME_RL else ""


def _is_sft(root: Mapping, keys: set[str]) -> bool:
    """Return whether a file is for prime-rl's supervised training: it has data of its own."""
    data, model = (find(root, (part,)) for part in ("data", "model"))
    if not isinstance(data, Mapping) or not isinstance(model, Mapping) or keys & _PRIME_RL_OWN:
        return False
    own = {entry.key for entry in data.entries}
    return bool(own & {"seq_len", "type", "micro_batch_size"}) and bool(keys & _SFT)


def looks_like_config(text: str) -> bool:
    """Return whether an unparsable file found in a folder was probably intended as a config; templates and
    manifests are not.
    """
    return _CONFIG_KEYS.search(text) is not None


def is_complete(root: Mapping) -> bool:
    """Return whether a file in TOML that was found in a folder is a complete config and not only a part to
    merge into another.
    """
    return any(root.entry(name) is not None for name in ("orchestrator", "training", "data"))


def format_of_yaml(root: Mapping) -> ConfigFormat:
    """Return the format of a YAML config; empty for a run's spec and for any other YAML."""
    keys = {entry.key for entry in root.entries}
    if is_spec(root) and not keys & _VERL_BESIDE:
        return ""
    if keys >= _AREAL:
        return "areal"
    if keys >= _TRM:
        return "trm"
    if _RL in keys or (keys >= _VERL and keys & _VERL_BESIDE):
        return "verl"
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
    if kind in ("areal", "verl", "torchtitan"):
        return cast("ConfigFormat", kind)
    named = {word.rpartition("/")[2] for word in split}
    by_module = next(
        (found for part, found in _MODULES.items() if any(word.startswith(part) for word in named)), None
    )
    if by_module:
        return by_module
    if any(name.startswith(f"{_RL}.") for name, _ in settings(command)):
        return "verl"
    if "sft" in named and any(word.startswith("@") for word in split):
        return "prime_rl_sft"
    if kind not in _MAY_BE_HF:
        return ""
    given = {name for name, _ in flags(command)}
    if named & _HF_PROGRAMS and given & (_HF_FLAGS | _MODEL_FLAGS | _LLAMA_FACTORY):
        return "hf"
    known = _HF_FLAGS | _MODEL_FLAGS if kind == "hf" else _HF_FLAGS
    is_hf = given & known or ("model_name_or_path" in given and len(given & _MODEL_FLAGS) >= _HF_MIN)
    return "hf" if is_hf else ""


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
    names = {"output_dir", "model_name_or_path"}
    return bool(keys & names) and len(keys & _HF) >= _HF_MIN and not keys & _NOT_HF


def is_spec(root: Mapping) -> bool:
    """Return whether a file found in a folder is intended as a run's spec."""
    return bool({entry.key for entry in root.entries} & _SPEC)

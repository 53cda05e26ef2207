"""What the settings of a program that is built on the Trainer of transformers say, by whichever names the
program calls them: a script of one's own or of TRL, axolotl, or LLaMA-Factory.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from prime_train.estimate.memory.training_setup import Sharding
from prime_train.spec.config_format import flags, variables, words
from prime_train.spec.launchers import config_taken, launcher_config
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import Listing, Scalar, Value, plain
from prime_train.spec.tree import Mapping as Tree
from prime_train.text.finite import number_of

NUMBER_MAX = 2**24
_TRL_KEYS = frozenset(
    (
        "num_generations",
        "max_completion_length",
        "max_prompt_length",
        "dataset_name",
        "use_vllm",
        "model_revision",
    )
)
_FACTORY_KEYS = frozenset(
    ("cutoff_len", "finetuning_type", "stage", "template", "quantization_bit", "dataset_dir", "lora_target")
)
_SECOND_KEYS = frozenset(("model_class", "peft_config", "dist_config", "kernel_config", "quant_config"))
_SWIFT_KEYS = frozenset(("tuner_type", "train_type", "sft_type", "rlhf_type"))
_STAGE = re.compile(r"(?:z(?:ero)?|stage)[-_ ]?([0-3])(?![0-9])", re.IGNORECASE)
_BY_STAGE = {"0": Sharding.NONE, "1": Sharding.ZERO1, "2": Sharding.ZERO2, "3": Sharding.ZERO3}
_OFF = (None, False, "", "none", "no")
_FACTORY = frozenset(("llamafactory-cli", "lmf"))


@dataclass(frozen=True)
class Program:
    """How a program names its settings, and which values it uses where they are not given. `steps_of` are the
    settings that shorten a step's activations: `recompute` is whether they are recomputed by default.
    """

    title: str
    model: str
    seq_len: str
    seq_len_default: int
    micro_batch: str
    micro_batch_default: int
    recompute: bool
    lora_rank: int
    weights_32: bool
    """What is trained is kept in 32 bits, unless a setting says otherwise."""
    shards_itself: bool
    """It starts its own processes, which have a copy of the model each unless its own settings say
    otherwise.
    """


SCRIPT = Program(
    "the Trainer",
    "model_name_or_path",
    "max_length",
    1024,
    "per_device_train_batch_size",
    8,
    False,
    16,
    True,
    False,
)
TRL = Program(
    "TRL", "model_name_or_path", "max_length", 1024, "per_device_train_batch_size", 8, True, 16, True, False
)
AXOLOTL = Program("axolotl", "base_model", "sequence_len", 512, "micro_batch_size", 1, False, 8, False, True)
LLAMA_FACTORY = Program(
    "LLaMA-Factory",
    "model_name_or_path",
    "cutoff_len",
    2048,
    "per_device_train_batch_size",
    8,
    True,
    8,
    True,
    True,
)
LLAMA_FACTORY_1 = Program(
    "LLaMA-Factory", "model", "cutoff_len", 2048, "micro_batch_size", 1, True, 16, False, True
)


SWIFT = Program(
    "ms-swift", "model", "max_length", 4096, "per_device_train_batch_size", 1, True, 8, False, True
)


class Offloaded(StrEnum):
    """What is kept in the host's memory."""

    NOTHING = "nothing"
    OPTIMIZER = "optimizer"
    ALL = "all"


@dataclass(frozen=True)
class Spread:
    """How a model is spread over GPUs. `sharding` None: a file that is not known here may say so. `by_name`:
    only the name of such a file says so, and its text may offload more.
    """

    sharding: Sharding | None
    offloaded: Offloaded = Offloaded.NOTHING
    by_name: bool = True


@dataclass(frozen=True)
class TrainerSettings:
    """The settings of a program that is built on the Trainer. `command`: the command that starts it; empty if
    it is not known.
    """

    document: Document
    command: str = ""
    named: Mapping[str, Document] = field(default_factory=dict)
    """The files of settings that the command and these settings name, as far as they are here."""

    @cached_property
    def program(self) -> Program:
        keys = {entry.key for entry in self.document.root.entries}
        started = {word.rpartition("/")[2] for word in words(self.command)}
        if keys & _SWIFT_KEYS or "swift" in started:
            return SWIFT
        if "base_model" in keys:
            return AXOLOTL
        if "model" in keys and keys & _SECOND_KEYS:
            return LLAMA_FACTORY_1
        if (
            keys & _FACTORY_KEYS
            or started & _FACTORY
            or ("model_name_or_path" in keys and config_taken(self.command) is not None)
        ):
            return LLAMA_FACTORY
        is_trl = keys & _TRL_KEYS or "trl" in started or any(name.startswith("trl.") for name in started)
        return TRL if is_trl else SCRIPT

    @cached_property
    def given(self) -> Mapping[str, str]:
        """Return the flags of the command."""
        return dict(flags(self.command))

    @property
    def model_names(self) -> tuple[str, ...]:
        """Return the settings that may name the model, the program's own first."""
        return (self.program.model, "model_name_or_path", "base_model", "model_name", "model_id", "model")

    @property
    def model(self) -> str:
        """Return the model's name or path; empty if no setting names it."""
        return next((name for one in self.model_names if (name := self.text(one))), "")

    def value(self, *path: str) -> Value:
        return self.document.value(*path)

    def is_on(self, *path: str) -> bool:
        return self.value(*path) is True

    def is_set(self, *path: str) -> bool:
        """Return whether a setting has a value that switches something on: any but null, false, none and an
        empty text or list.
        """
        node = self.document.at(*path)
        if isinstance(node, Scalar):
            return (node.value.lower() if isinstance(node.value, str) else node.value) not in _OFF
        return node is not None and bool(node.items if isinstance(node, Listing) else node.entries)

    def text(self, *path: str) -> str:
        value = self.value(*path)
        return value if isinstance(value, str) else ""

    def number(self, *path: str) -> float | None:
        """Return the number at a path; a text such as 1e-5 counts, as YAML takes it for a text."""
        return number_of(self.value(*path))

    def integer(self, *path: str) -> int | None:
        """Return the whole number from 1 to `NUMBER_MAX` at a path; None if there is none."""
        number = self.number(*path)
        return (
            int(number)
            if number is not None and number == int(number) and 1 <= number <= NUMBER_MAX
            else None
        )

    def words_at(self, *path: str) -> tuple[str, ...]:
        """Return the words of a list, or of a text in which they are separated by spaces or commas."""
        node = self.document.at(*path)
        if isinstance(node, Listing):
            return tuple(item.text for item in node.items if isinstance(item, Scalar))
        return (
            tuple(re.split(r"[\s,]+", node.text.strip()))
            if isinstance(node, Scalar) and node.text.strip()
            else ()
        )

    @property
    def spread(self) -> Spread:
        """Return how the model is spread over GPUs, as far as the settings and the command say so."""
        deepspeed, fsdp = self._deepspeed(), self._fsdp()
        if deepspeed is not None:
            return deepspeed
        if fsdp is not None:
            return fsdp
        named = launcher_config(self.command) or ""
        if not named and self.program is SWIFT and "NPROC_PER_NODE" not in variables(self.command):
            return Spread(None, by_name=False)  # one process divides the layers over all GPUs that it sees
        if self.program is LLAMA_FACTORY_1 or not named:
            return Spread(Sharding.NONE, by_name=False)
        return self._by_file(named)

    def _by_file(self, name: str) -> Spread:
        """Return how a file of DeepSpeed's or accelerate's settings spreads the model: by its content if it is
        here, and else by its name.
        """
        file = self.named.get(name)
        if file is None:
            return _by_name(name)
        if file.at("zero_optimization") is not None:
            return _by_deepspeed(file, ("zero_optimization",))
        own = file.text("deepspeed_config", "deepspeed_config_file")
        if own is not None:
            return self._by_file(own)
        kind = (file.text("distributed_type") or "").upper()
        if kind == "DEEPSPEED" or file.at("deepspeed_config") is not None:
            return _by_deepspeed(file, ("deepspeed_config",))
        if kind == "FSDP" or (not kind and file.at("fsdp_config") is not None):
            return _by_fsdp(file)
        return Spread(Sharding.NONE, by_name=False) if kind else _by_name(name)

    def _deepspeed(self) -> Spread | None:
        node = self.document.at("deepspeed")
        if isinstance(node, Tree):
            stage = str(self.integer("deepspeed", "zero_optimization", "stage") or 0)
            parts = self.document.at("deepspeed", "zero_optimization")
            text = f"stage{stage} {plain(parts)}" if parts is not None else f"stage{stage}"
            return replace(_by_name(text.replace("'none'", "")), by_name=False)
        name = self.text("deepspeed") or self.given.get("deepspeed", "")
        if not name and "zero_stage" in self.given:
            name = (
                f"stage{self.given['zero_stage']} "
                f"{self.given.get('offload_optimizer_device', 'none').replace('cpu', 'offload')}"
            )
        if self.text("dist_config", "name") == "deepspeed":
            name = self.text("dist_config", "config_file") or "?"
        return self._by_file(name) if name else None

    def _fsdp(self) -> Spread | None:
        # axolotl takes a section fsdp_config alone, or a list under fsdp.
        is_on = (
            self.is_set("fsdp")
            or self.is_set("fsdp_config")
            or "use_fsdp" in self.given
            or "fsdp" in self.given
        )
        if not is_on and not self.text("dist_config", "name").startswith("fsdp"):
            return None
        kinds = " ".join(
            (
                *self.words_at("fsdp"),
                self.text("fsdp_config", "sharding_strategy"),
                self.given.get("fsdp", ""),
            )
        ).lower()
        kinds += self.text("fsdp_config", "fsdp_sharding_strategy").lower()
        is_second = self.integer("fsdp_version") == 2 or self.integer("fsdp_config", "fsdp_version") == 2
        is_second = is_second or self.text("dist_config", "name") == "fsdp2"
        full = Sharding.FSDP2 if is_second else Sharding.FSDP1
        sharding = (
            Sharding.ZERO2 if "shard_grad_op" in kinds else Sharding.NONE if "no_shard" in kinds else full
        )
        offload = "offload" in kinds or any(
            self.is_on("fsdp_config", name) for name in ("offload_params", "fsdp_offload_params")
        )
        return Spread(sharding, Offloaded.ALL if offload else Offloaded.NOTHING, by_name=False)


def trainer_settings(subject: Subject) -> TrainerSettings | None:
    """Return the settings of a subject; None if it has no config of the Trainer."""
    if subject.trainer is None or subject.format != "hf":
        return None
    return TrainerSettings(subject.trainer, subject.command, dict(subject.named))


def _by_deepspeed(file: Document, path: tuple[str, ...]) -> Spread:
    """Return how DeepSpeed's settings below this path spread the model."""
    stage = file.number(*path, "stage")
    stage = file.number(*path, "zero_stage") if stage is None else stage
    states, weights = (
        str(
            file.value(*path, f"offload_{part}", "device")
            or file.value(*path, f"offload_{part}_device")
            or "none"
        )
        for part in ("optimizer", "param")
    )
    sharding = _BY_STAGE.get(str(int(stage)) if stage is not None else "0", Sharding.NONE)
    if sharding is Sharding.NONE and file.value("bf16", "enabled") not in (None, False):
        sharding = Sharding.ZERO1  # its optimizer for bfloat16 shards the states even in stage 0
    if weights != "none" and sharding is Sharding.ZERO3:
        return Spread(sharding, Offloaded.ALL, by_name=False)
    return Spread(sharding, Offloaded.OPTIMIZER if states != "none" else Offloaded.NOTHING, by_name=False)


def _by_fsdp(file: Document) -> Spread:
    """Return how accelerate's settings of FSDP spread the model."""
    kind = str(file.value("fsdp_config", "fsdp_sharding_strategy") or "").upper()
    version = file.number("fsdp_config", "fsdp_version")
    full = Sharding.FSDP2 if version == 2 else Sharding.FSDP1
    named = {
        "SHARD_GRAD_OP": Sharding.ZERO2,
        "2": Sharding.ZERO2,
        "NO_SHARD": Sharding.NONE,
        "3": Sharding.NONE,
    }
    offloads = file.value("fsdp_config", "fsdp_offload_params") is True
    return Spread(named.get(kind, full), Offloaded.ALL if offloads else Offloaded.NOTHING, by_name=False)


def _by_name(name: str) -> Spread:
    """Return how a file of DeepSpeed's or accelerate's settings spreads the model, by its name; such files
    are named after it.
    """
    stage = _STAGE.search(name)
    has_offload = "offload" in name.lower()
    if stage is not None:
        sharding = _BY_STAGE[stage[1]]
        is_all = has_offload and sharding is Sharding.ZERO3
        return Spread(
            sharding, Offloaded.ALL if is_all else Offloaded.OPTIMIZER if has_offload else Offloaded.NOTHING
        )
    if "fsdp" in name.lower():
        return Spread(
            Sharding.FSDP2 if "fsdp2" in name.lower() else Sharding.FSDP1,
            Offloaded.ALL if has_offload else Offloaded.NOTHING,
        )
    if re.search(r"ddp|multi_?gpu|single_?gpu", name, re.IGNORECASE):
        return Spread(Sharding.NONE)
    return Spread(None)

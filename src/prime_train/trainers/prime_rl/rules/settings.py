"""The effective values of a prime-rl config: the setting itself, otherwise the one shared by all parts,
otherwise prime-rl's default.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from prime_train.spec.tree import Listing, Mapping, Node, Value, find
from prime_train.trainers.prime_rl.conventions import shares_gpu
from prime_train.trainers.prime_rl.rules.fields import ROOT, UNSAID, section
from prime_train.trainers.prime_rl.rules.schema import is_null
from prime_train.trainers.prime_rl.rules.schema_errors import Where

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

SHARED: dict[str, tuple[str, ...]] = {
    "model.name": ("trainer.model.name", "orchestrator.model.name", "inference.vllm.model"),
    "seq_len": ("trainer.model.seq_len", "orchestrator.seq_len"),
    "max_steps": ("trainer.max_steps", "orchestrator.max_steps"),
    "ckpt.interval": ("trainer.ckpt.interval", "orchestrator.ckpt.interval"),
    "ckpt.keep_last": ("trainer.ckpt.keep_last", "orchestrator.ckpt.keep_last"),
    "ckpt.keep_interval": ("trainer.ckpt.keep_interval", "orchestrator.ckpt.keep_interval"),
    "ckpt.output_dir": ("trainer.ckpt.output_dir",),
    "log.level": ("trainer.log.level", "orchestrator.log.level", "inference.log.level"),
    "log.json_logging": (
        "trainer.log.json_logging",
        "orchestrator.log.json_logging",
        "inference.log.json_logging",
    ),
    "monitors.wandb.project": ("trainer.monitors.wandb.project", "orchestrator.monitors.wandb.project"),
    "monitors.wandb.entity": ("trainer.monitors.wandb.entity", "orchestrator.monitors.wandb.entity"),
    "monitors.wandb.name": ("trainer.monitors.wandb.name", "orchestrator.monitors.wandb.name"),
    "monitors.wandb.group": ("trainer.monitors.wandb.group", "orchestrator.monitors.wandb.group"),
    "monitors.wandb.offline": ("trainer.monitors.wandb.offline", "orchestrator.monitors.wandb.offline"),
    "monitors.file.path": ("trainer.monitors.file.path", "orchestrator.monitors.file.path"),
    "tokenizer.name": ("trainer.tokenizer.name", "orchestrator.tokenizer.name"),
    "tokenizer.chat_template": (
        "trainer.tokenizer.chat_template",
        "orchestrator.tokenizer.chat_template",
        "inference.vllm.chat_template",
    ),
    "weight_broadcast.type": ("trainer.weight_broadcast.type", "orchestrator.weight_broadcast.type"),
}
"""Shared settings, with the settings of the parts that they fill in if these are not set."""

NUMBER_MAX = 10**15
ESSENTIAL_MIN = 3
_ESSENTIAL = (
    ("max_steps", "trainer.max_steps"),
    ("model.name", "trainer.model.name"),
    ("orchestrator.batch_size", "orchestrator.token_batch_size"),
    ("orchestrator.train.source", "orchestrator.train.env", "orchestrator.env"),
    ("inference", "deployment"),
)
"""The settings that a launchable config usually has, each with alternatives; at least `ESSENTIAL_MIN` of them
must be set.
"""

_SHARED_BY = {own: shared for shared, all_own in SHARED.items() for own in all_own}


@dataclass(frozen=True)
class ReceivedConfig:
    """A config as prime-rl would receive it, with the run that names it, if any."""

    root: Mapping
    spec: "RunSpec | None" = None

    @cached_property
    def index(self) -> dict[str, Node]:
        """Return every node outside of lists by its dotted path, cached because dozens of rules request
        it.
        """
        return dict(_named(self.root, ""))

    def at(self, path: str | Where) -> Node | None:
        """Return the node written at a path, null included; None if nothing is written."""
        return self.index.get(path) if isinstance(path, str) else find(self.root, path)

    def has(self, path: str | Where) -> bool:
        """Return whether a value other than null is written at the path."""
        node = self.at(path)
        return node is not None and not is_null(node)

    def given_at(self, path: str) -> Where | None:
        """Return the path of the effective value: its own or the shared one; None if neither is written."""
        name = path if path in self.index else _SHARED_BY.get(path, "")
        return tuple(name.split(".")) if name in self.index else None

    def value(self, path: str) -> Value:
        """Return the effective value or the default; None if it is null, a table or a list."""
        name = path if path in self.index else _SHARED_BY.get(path, "")
        return _plain(self.index[name]) if name in self.index else default(path)

    def number(self, path: str) -> float | None:
        """Return the effective value if it is a number, otherwise None."""
        return _number(self.value(path))

    def number_at(self, path: Where) -> float | None:
        """Return the number written at the path, without a default."""
        return _number(_plain(self.at(path)))

    def text_at(self, path: Where) -> str | None:
        """Return the text written at the path, without a default."""
        value = _plain(self.at(path))
        return value if isinstance(value, str) else None

    def integer(self, path: str) -> int | None:
        """Return the effective value if it is a whole number, otherwise None."""
        number = self.number(path)
        return int(number) if number is not None and number == int(number) else None

    def text(self, path: str) -> str | None:
        """Return the effective value if it is text, otherwise None."""
        value = self.value(path)
        return value if isinstance(value, str) else None

    def is_on(self, path: str) -> bool:
        return self.value(path) is True

    def place(self, path: str) -> Where:
        """Return the path at which to report a violation of this setting: the path that holds the effective
        value, or if none does, the setting's own.
        """
        return self.given_at(path) or tuple(path.split("."))

    def items(self, path: str | Where) -> Iterator[tuple[Where, Mapping]]:
        """Yield the tables of a list, each with its path."""
        node, start = self.at(path), tuple(path.split(".")) if isinstance(path, str) else path
        if isinstance(node, Listing):
            yield from (
                ((*start, at), item) for at, item in enumerate(node.items) if isinstance(item, Mapping)
            )

    @cached_property
    def is_complete(self) -> bool:
        """Return whether the config can be launched as it is. A file with few settings is intended to be
        merged into another one with the rest.
        """
        return (
            self.spec is not None or sum(any(map(self.has, names)) for names in _ESSENTIAL) >= ESSENTIAL_MIN
        )

    @property
    def is_one_node(self) -> bool:
        """Return whether the deployment is a single node; False for a partial config that does not set the
        deployment.
        """
        return self.value("deployment.type") == "single_node" and (self.is_complete or self.has("deployment"))

    @property
    def train_gpus(self) -> int | None:
        """Return the trainer's GPUs; None if they are not known or the GPUs are assigned inconsistently, as
        the wrong number is then not known.
        """
        return (
            self.integer("deployment.num_train_gpus") if self.is_one_node and not self.is_misdealt else None
        )

    @property
    def all_train_gpus(self) -> int | None:
        """Return the trainer's GPUs on all nodes; None if not known. For a run, another rule reports several
        nodes.
        """
        if self.value("deployment.type") != "multi_node" or self.spec is not None:
            return self.train_gpus
        nodes, node = self.integer("deployment.num_train_nodes"), self.integer("deployment.gpus_per_node")
        return nodes * node if nodes is not None and node is not None and nodes >= 1 and node >= 1 else None

    @property
    def infer_gpus(self) -> int | None:
        """Return the inference GPUs; None under the conditions of `train_gpus`, and if prime-rl does not
        start a server itself.
        """
        is_known = self.is_one_node and self.has("inference") and not self.is_misdealt
        return self.integer("deployment.num_infer_gpus") if is_known else None

    @property
    def is_on_one_gpu(self) -> bool:
        """Return whether the trainer's only GPU is the server's only one, too, because the run rents no
        other.
        """
        one_each = self.train_gpus == 1 and self.infer_gpus == 1
        return one_each and self.spec is not None and shares_gpu(self.spec.hardware)

    @cached_property
    def is_misdealt(self) -> bool:
        """Return whether one side has no GPU, or both together have more than deployment.gpus_per_node."""
        train, infer, node = (
            self.integer(f"deployment.{name}")
            for name in ("num_train_gpus", "num_infer_gpus", "gpus_per_node")
        )
        if train is None or infer is None or node is None:
            return False
        return train < 1 or (infer < 1 and self.has("inference")) or train + infer > node


def _named(node: Mapping, above: str) -> Iterator[tuple[str, Node]]:
    for entry in node.entries:
        yield above + entry.key, entry.value
        if isinstance(entry.value, Mapping):
            yield from _named(entry.value, f"{above}{entry.key}.")


@cache
def default(path: str) -> Value:
    """Return prime-rl's default for a setting; None for tables, lists and unknown settings."""
    part, steps = section(ROOT), path.split(".")
    for at, step in enumerate(steps):
        setting = part.settings.get(step)
        if setting is None:
            return None
        if at == len(steps) - 1:
            return None if setting.default == UNSAID else setting.default
        by, plain = setting.kind("by"), setting.kind("section")
        if by is not None and steps[at + 1 :] == [by.text]:
            return None if setting.default == UNSAID else setting.default
        names = [to for word, to in by.options if word == setting.default] if by is not None else []
        if not names and plain is None:
            return None
        part = section(names[0] if names else plain.text if plain is not None else "")
    return None


def _plain(node: Node | None) -> Value:
    if node is None or isinstance(node, Mapping | Listing) or is_null(node):
        return None
    return node.value


def _number(value: Value) -> float | None:
    """Return the number; None if it is not a number or exceeds `NUMBER_MAX`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= NUMBER_MAX
    return value if is_number and isinstance(value, int | float) else None

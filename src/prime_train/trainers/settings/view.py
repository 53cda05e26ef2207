"""What a run trains and how, in the same words for every trainer: the view that rules and estimates read.

A value may come from the command, from a file that it names, from a file that this one names, or from a variable
of the environment. Each has its place; a value without a path is what the trainer does if nobody says otherwise.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from prime_train.estimate.memory.training_setup import Method, Recompute, Sharding
from prime_train.spec.rule import Document
from prime_train.spec.tree import Mapping, Path, Scalar, SourcePosition, Value
from prime_train.text.finite import number_of

T = TypeVar("T")

NUMBER_MAX = 2**24
"""The largest number that is taken for one of tokens, samples, steps or processes."""
REFERENCES_MAX = 5
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")
OFF = (None, False, "", "none", "no", "null", "disabled")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """A value, the path of the setting that says it, and where that is written: a file and a line, or the
    command. Without a path it is the trainer's own default.
    """

    value: T
    path: Path = ()
    place: SourcePosition | None = None

    @property
    def is_default(self) -> bool:
        return not self.path


@dataclass(frozen=True)
class Saving:
    """How a trainer saves. `every`: steps between two checkpoints; None if it is not known, or counts in
    another unit. `kept`: the number of checkpoints that it keeps; None for all.
    """

    is_on: Setting[bool]
    """Whether anything is saved before the end."""
    every: Setting[int | None] = Setting(None)
    kept: Setting[int | None] = Setting(None)
    weights_only: Setting[bool] = Setting(False)
    """Checkpoints have no optimizer, so nothing can properly resume from one."""
    folder: Setting[str] = Setting("")
    """Where they are written; empty if that is not known."""


@dataclass(frozen=True)
class TrainingSettings:
    """What is trained, how, and how it is saved. `program`: what reads the settings, in words."""

    program: str
    model: Setting[str]
    """Its name or path; empty if nothing names it."""
    method: Setting[Method]
    optimizer: Setting[str]
    seq_len: Setting[int]
    micro_batch: Setting[int]
    """Samples that a GPU processes at once."""
    accumulation: Setting[int]
    recompute: Setting[Recompute]
    sharding: Setting[Sharding | None]
    """None: a file that is not here says it, or a script's own code."""
    saving: Saving
    processes: Setting[int | None] = Setting(None)
    """Processes of the trainer on its machine; None if nothing says how many."""
    machines: Setting[int | None] = Setting(None)
    """Machines that the processes are on, where the trainer's own settings, or the launcher's, say so."""
    steps: Setting[int | None] = Setting(None)
    epochs: Setting[float | None] = Setting(None)
    resume: Setting[str] = Setting("")
    """What the settings say to resume from; empty if they do not."""


@dataclass(frozen=True)
class Reader:
    """Reads settings of a document by their dotted names. Of several names the first that has a value of the
    right type counts.
    """

    document: Document

    def text(self, *names: str, default: str = "") -> Setting[str]:
        return self._first(names, lambda value: value if isinstance(value, str) and value else None, default)

    def integer(self, *names: str, default: int, least: int = 1) -> Setting[int]:
        """Return a whole number from `least` to `NUMBER_MAX`."""
        return self._first(names, lambda value: _whole(value, least), default)

    def maybe(self, *names: str, least: int = 1) -> Setting[int | None]:
        """Return the same, and None where there is none."""
        return self._first(names, lambda value: _whole(value, least), None)

    def number(self, *names: str) -> Setting[float | None]:
        return self._first(names, number_of, None)

    def switch(self, *names: str, default: bool) -> Setting[bool]:
        return self._first(names, lambda value: value if isinstance(value, bool) else None, default)

    def has(self, name: str) -> bool:
        """Return whether a setting, or a part of the settings, is there and not null."""
        node = self.document.at(*name.split("."))
        return node is not None and (not isinstance(node, Scalar) or node.value not in OFF)

    def at(self, name: str, value: T) -> Setting[T]:
        """Return a value that follows from the setting of this name; a default if it is not written."""
        path = tuple(name.split("."))
        node = self.document.at(*path)
        if node is None:
            return Setting(value)
        return Setting(value, path, replace(node.place, file=self.document.file_of(node)))

    def keys(self, name: str) -> tuple[str, ...]:
        node = self.document.at(*name.split("."))
        return tuple(entry.key for entry in node.entries) if isinstance(node, Mapping) else ()

    def _first(self, names: tuple[str, ...], read: "Callable[[object], T | None]", default: T) -> Setting[T]:
        for name in names:
            value = read(resolved(self.document, *name.split(".")))
            if value is not None:
                return self.at(name, value)
        return Setting(default)


def resolved(document: Document, *path: str) -> Value:
    """Return the value at a path, or at the one that it refers to, such as ${actor.path}; None if there is
    none.
    """
    for _ in range(REFERENCES_MAX):
        value = document.value(*path)
        found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if found is None or "." not in found[1]:
            return value
        path = tuple(found[1].split("."))
    return None


def _whole(value: object, least: int) -> int | None:
    number = number_of(value)
    return (
        int(number)
        if number is not None and number == int(number) and least <= number <= NUMBER_MAX
        else None
    )

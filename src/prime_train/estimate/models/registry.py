"""The registry of models that people train, and what is known to work with them. These facts age, so they are
in a dated data file.

The file is `registry.json` in this folder. Nothing is concluded about a model that is not in it. The shapes
for memory estimates are in estimate/models/table.py.
"""

from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from prime_train.text.nearest import POSSIBLE, nearest

FILE = "registry.json"
SIMILAR_MAX = 3

Date = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
ModelId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$")
]


class ModelFact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ModelKind(StrEnum):
    TEXT = "text"
    VISION_LANGUAGE = "vision-language"
    PUZZLE = "puzzle"
    """A small model that solves puzzles. It generates no text, and no inference server is needed."""


class Citation(StrEnum):
    """How a row was obtained: by a person from published configurations, or by a program from the hub."""

    HAND = "hand"
    HUB = "hub"


class Works(ModelFact):
    """A trainer or server version for which success with the model has been reported publicly, or whose
    makers publish a configuration for it.
    """

    trainer: str
    version: str


class Issue(ModelFact):
    """A known problem. `date` is when it was last observed."""

    date: Date
    text: str


class ModelEntry(ModelFact):
    id: ModelId
    params: int = Field(gt=0)
    kind: ModelKind
    architecture: str
    """The architecture name in its `config.json`."""
    context: int = Field(gt=0)
    """The longest sequence the model was made for, in tokens."""
    tools: bool
    """Whether its chat template supports tools."""
    gated: Literal["no", "auto", "manual"]
    """"auto": access requires agreeing to its terms; "manual": a person must also approve it."""
    vllm: str
    """The oldest vLLM version that the model's makers or vLLM name for it; empty if none is named."""
    works: tuple[Works, ...] = ()
    issues: tuple[Issue, ...] = ()
    read: Date
    source: Citation
    reference: str = ""
    """The published configuration, and other texts, that a person has read these facts from; empty if that
    was not recorded.
    """


class Vllm(ModelFact):
    """The architectures that one vLLM version serves; later versions serve more."""

    version: str
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    text: tuple[str, ...]
    vision_language: tuple[str, ...]
    dropped: dict[str, str]
    """Architectures no longer served, with the last version that served them."""

    def kind_of(self, architecture: str) -> ModelKind | None:
        """Return the kind of an architecture, or None if this version does not list it."""
        if architecture in self.vision_language:
            return ModelKind.VISION_LANGUAGE
        return ModelKind.TEXT if architecture in self.text else None


class Registry(ModelFact):
    date: Date
    """When an entry was last read."""
    vllm: Vllm
    models: tuple[ModelEntry, ...]

    @model_validator(mode="after")
    def _each_once_and_in_order(self) -> "Registry":
        names = [entry.id.lower() for entry in self.models]
        if names != sorted(set(names)):
            raise ValueError("models must be in alphabetical order, without duplicates")
        return self

    @cached_property
    def _by_id(self) -> dict[str, ModelEntry]:
        return {entry.id.lower(): entry for entry in self.models}

    def entry(self, model_id: str) -> ModelEntry | None:
        """Return the entry of a model id, ignoring case as the hub does; None if it is not registered."""
        return self._by_id.get(model_id.strip().lower())

    def similar(self, model_id: str) -> tuple[str, ...]:
        """Return up to `SIMILAR_MAX` similar ids, nearest first."""
        wanted, own = model_id.strip().lower(), {name.rpartition("/")[2]: name for name in self._by_id}
        close = nearest(wanted.rpartition("/")[2], own, likeness=POSSIBLE, limit=SIMILAR_MAX)
        return tuple(self._by_id[own[name]].id for name in close)


def parse(text: str) -> Registry:
    """Return the registry parsed from JSON. Raises ValueError, which names field and value, if the text is
    not a valid registry.
    """
    return Registry.model_validate_json(text)


def dumped(registry: Registry) -> str:
    """Return the registry as the text of its file; the text is deterministic."""
    return registry.model_dump_json(indent=1) + "\n"

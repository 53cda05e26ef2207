"""Models that people train, and what is known to work with them: facts that age, so they lie in a data file that says when it was written.

`registry.json` beside this module is the file. What is not in it is not known to us; nothing follows from that. The shapes that memory is
counted from are those of `model_table`.
"""

import difflib
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

FILE = "registry.json"
NEAR_MAX = 3
_NEAR = 0.5

Date = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
ModelId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$")]


class Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Kind(StrEnum):
    TEXT = "text"
    VISION_LANGUAGE = "vision-language"


class Source(StrEnum):
    """Where a row was read: by a person in published configurations, or by a program at the hub."""

    HAND = "hand"
    HUB = "hub"


class Works(Row):
    """Somebody trained or served it so, and said so in public."""

    trainer: str
    version: str


class Issue(Row):
    """`date`: when it was seen last."""

    date: Date
    text: str


class Entry(Row):
    id: ModelId
    params: int = Field(gt=0)
    kind: Kind
    architecture: str
    """As its `config.json` names it."""
    context: int = Field(gt=0)
    """Longest sequence it was made for, in tokens."""
    tools: bool
    """Its chat template takes tools."""
    gated: Literal["no", "auto", "manual"]
    """auto: one has to agree to its terms; manual: and a person lets one in."""
    vllm: str
    """The oldest vLLM that its makers or vLLM's name for it; empty: none is named."""
    works: tuple[Works, ...] = ()
    issues: tuple[Issue, ...] = ()
    read: Date
    source: Source


class Vllm(Row):
    """Architectures that one version of vLLM serves; later ones serve more."""

    version: str
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    text: tuple[str, ...]
    vision_language: tuple[str, ...]
    dropped: dict[str, str]
    """Those it serves no more, with the last version that did."""

    def kind_of(self, architecture: str) -> Kind | None:
        """None: not among them."""
        if architecture in self.vision_language:
            return Kind.VISION_LANGUAGE
        return Kind.TEXT if architecture in self.text else None


class Registry(Row):
    date: Date
    """When it was last gone over as a whole."""
    vllm: Vllm
    models: tuple[Entry, ...]

    @model_validator(mode="after")
    def _each_once_and_in_order(self) -> "Registry":
        names = [entry.id.lower() for entry in self.models]
        if names != sorted(set(names)):
            raise ValueError("models must be in alphabetical order, and each there once")
        return self

    @cached_property
    def _by_id(self) -> dict[str, Entry]:
        return {entry.id.lower(): entry for entry in self.models}

    def entry(self, model_id: str) -> Entry | None:
        """Capitals do not count, as at the hub."""
        return self._by_id.get(model_id.strip().lower())

    def near(self, model_id: str) -> tuple[str, ...]:
        """Ids that may be meant, nearest first."""
        wanted, own = model_id.strip().lower(), {name.rpartition("/")[2]: name for name in self._by_id}
        close = difflib.get_close_matches(wanted.rpartition("/")[2], own, NEAR_MAX, _NEAR)
        return tuple(self._by_id[own[name]].id for name in close)


def parse(text: str) -> Registry:
    """Raises ValueError, which names field and value, for what is no registry."""
    return Registry.model_validate_json(text)


def dumped(registry: Registry) -> str:
    """The text of the file, the same for the same registry."""
    return registry.model_dump_json(indent=1) + "\n"

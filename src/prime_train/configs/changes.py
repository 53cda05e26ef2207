"""Compares two configs key by key; each change carries the documentation of the spec's field."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from prime_train.configs.parsing.nodes import ParseAborted
from prime_train.configs.parsing.yaml_tree import read_code
from prime_train.configs.schema import field_texts
from prime_train.core.config_tree import plain
from prime_train.core.spec import Part, RunSpec

VALUE_CHARS_MAX = 60
ABSENT = object()
"""Placeholder for the value of a key that is not written in the config."""

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Change:
    """One changed key. `before` and `after` are `ABSENT` if the key is not written; `meaning` is empty if the field is not known."""

    key: str
    before: object
    after: object
    default: object
    meaning: str

    @property
    def text(self) -> str:
        """Return the change as text, such as "20 to 40" or "1 (its default) to 2"."""
        before, after = (self.default if value is ABSENT else value for value in (self.before, self.after))
        return f"{self._shown(self.before)} to {self._shown(self.after)}{': the same' if before == after else ''}"

    def _shown(self, value: object) -> str:
        if value is not ABSENT:
            return shown(value)
        return "nothing" if self.default is ABSENT else f"{shown(self.default)} (its default)"


def of_config(before: str, after: str) -> tuple[Change, ...] | None:
    """Return the changes between two config texts in YAML, or None if one of them cannot be parsed."""
    first, second = _yaml(before), _yaml(after)
    return None if first is None or second is None else tuple(_changes(first, second, RunSpec))


def of_trainer(before: str, after: str) -> tuple[Change, ...] | None:
    """Return the changes between two trainer configs in TOML, or None if one of them cannot be parsed."""
    try:
        first, second = tomllib.loads(before), tomllib.loads(after)
    except (ValueError, RecursionError):
        return None
    return tuple(_changes(first, second, None))


def shown(value: object) -> str:
    """Return the value as one line of at most `VALUE_CHARS_MAX` characters."""
    try:
        text = value if isinstance(value, str) and value else json.dumps(value, default=str)
    except ValueError:
        return "a number with too many digits to show"
    text = " ".join(text.split())
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[: VALUE_CHARS_MAX - 3]}..."


def _yaml(text: str) -> object:
    try:
        return plain(read_code(text)[0])
    except ParseAborted:
        return None


def _changes(before: object, after: object, model: type[Part] | None) -> Iterator[Change]:
    first, second = dict(_leaves(before)), dict(_leaves(after))
    texts = field_texts() if model is not None else {}
    for path in dict.fromkeys((*first, *second)):
        old, new = first.get(path, ABSENT), second.get(path, ABSENT)
        if old is not new and old != new:
            owner, name = _field(model, path)
            default = _default(owner.model_fields[name].default) if owner is not None else ABSENT
            meaning = (texts.get(owner.__name__, {}).get(name) or owner.__doc__ or "") if owner is not None else ""
            yield Change(_dotted(path), old, new, default, " ".join(meaning.split()))


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield each leaf value with its path; a list without mappings or lists in it is one leaf."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, at))
    else:
        yield path, value


def _dotted(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _field(model: type[Part] | None, path: Path) -> tuple[type[Part] | None, str]:
    """Return the model class and the field name that a path leads to, or the last known pair on the way."""
    found: tuple[type[Part] | None, str] = None, ""
    part = model
    for step in path:
        if isinstance(step, int):
            continue
        if part is None or step not in part.model_fields:
            break
        found = part, step
        part = _part(part.model_fields[step].annotation)
    return found


def _part(annotation: object) -> type[Part] | None:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    return next((part for argument in get_args(annotation) if (part := _part(argument)) is not None), None)


def _default(value: object) -> object:
    """Return the default, or `ABSENT` if it is the empty string or not a plain value."""
    return value if isinstance(value, str | int | float) and value != "" else ABSENT

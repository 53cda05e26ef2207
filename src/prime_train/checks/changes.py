"""Compares two configs key by key. A change of a run's spec carries the documentation of its field, one of a
trainer's own config what it does to the training and what the table of that trainer's settings says; the
rules say what either side has that the other has not.
"""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast, get_args

from prime_train.checks.explained import judged, setting_of
from prime_train.configs.impact import impact
from prime_train.spec import toml_tree, yaml_tree
from prime_train.spec.config_format import ConfigFormat, format_of_toml, format_of_yaml
from prime_train.spec.finding_drafts import ParseAborted
from prime_train.spec.schema import field_texts
from prime_train.spec.spec import RunSpec, SpecSection
from prime_train.spec.tree import Mapping as Tree
from prime_train.spec.tree import plain
from prime_train.trainers.registry import TRAINERS

VALUE_CHARS_MAX = 60
ABSENT = object()
"""Placeholder for the value of a key that is not written in the config."""

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class ConfigChange:
    """A key whose value differs between two configs. `before` and `after` are `ABSENT` if the key is not
    written; `meaning` is empty if the field is not known.
    """

    key: str
    before: object
    after: object
    default: object
    meaning: str

    @property
    def text(self) -> str:
        """Return the change as text, such as "20 to 40" or "1 (its default) to 2"."""
        before, after = (self.default if value is ABSENT else value for value in (self.before, self.after))
        return (
            f"{self._shown(self.before)} "
            "to "
            f"{self._shown(self.after)}{': the same' if before == after else ''}"
        )

    def _shown(self, value: object) -> str:
        if value is not ABSENT:
            return shown(value)
        return "nothing" if self.default is ABSENT else f"{shown(self.default)} (its default)"


@dataclass(frozen=True)
class Judgement:
    """What a rule says of one side of a comparison only. `key`: the place that it is about."""

    key: str
    text: str


def of_config(before: str, after: str) -> tuple[ConfigChange, ...] | None:
    """Return the changes between two config texts in YAML, or None if one of them cannot be parsed."""
    first, second = _yaml(before), _yaml(after)
    return None if first is None or second is None else tuple(_changes(first, second, RunSpec))


def of_trainer(before: str, after: str, kind: str = "") -> tuple[ConfigChange, ...] | None:
    """Return the changes between two trainer configs in TOML or YAML, or None if one of them cannot be
    parsed. `kind`: that of the trainer, where it is known otherwise than by its config.
    """
    first, second = _trainer_values(before), _trainer_values(after)
    if first is None or second is None:
        return None
    format_ = _format(after, kind) or _format(before, kind)
    try:
        return tuple(_explained(change, path, format_) for path, change in _changed(first, second, None))
    except RecursionError:  # dotted keys can nest tables as deep as a line is long
        return None


def of_rules(before: str, after: str, kind: str = "") -> tuple[Judgement, ...]:
    """Return what the rules say of the second of two trainer configs and not of the first, and the other way
    round. `kind`: as in `of_trainer`.
    """
    format_ = _format(after, kind) or _format(before, kind)
    first, second = (_judged(text, format_) for text in (before, after))
    new = [
        Judgement(_dotted(place), f"now {code}, {text}")
        for (place, code), text in second.items()
        if (place, code) not in first
    ]
    gone = [
        Judgement(_dotted(place), f"no longer {code}, {text}")
        for (place, code), text in first.items()
        if (place, code) not in second
    ]
    return (*new, *gone)


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
        return plain(yaml_tree.read_code(text)[0])
    except ParseAborted:
        return None


def _trainer_values(text: str) -> Mapping[str, object] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        found = _yaml(text)
        return {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else None


def _tree(text: str) -> tuple[Tree, bool] | None:
    """Return the tree of a trainer's config, and whether it is TOML; None if it cannot be parsed."""
    for read, is_toml in ((toml_tree.read_code, True), (lambda text: yaml_tree.read_code(text)[0], False)):
        try:
            return read(text), is_toml
        except (ParseAborted, RecursionError):
            continue
    return None


def _format(text: str, kind: str) -> ConfigFormat:
    """Return the format of a trainer's config, by its trainer if that has one of its own, or else by its
    keys.
    """
    if kind in TRAINERS and TRAINERS[kind].own_config is not None:
        return cast("ConfigFormat", kind)
    found = _tree(text)
    if found is None:
        return ""
    return format_of_toml(found[0]) if found[1] else format_of_yaml(found[0])


def _judged(text: str, format_: ConfigFormat) -> dict[tuple[Path, str], str]:
    found = _tree(text) if format_ else None
    return judged(format_, found[0], text) if found is not None else {}


def _explained(change: ConfigChange, path: Path, format_: ConfigFormat) -> ConfigChange:
    default, allowed = setting_of(format_, path)
    known = ABSENT if default is None else default
    before, after = (known if value is ABSENT else value for value in (change.before, change.after))
    effect = impact(change.key, before, after)
    return replace(change, default=known, meaning=" ".join(filter(None, (effect, allowed))))


def _changes(before: object, after: object, model: type[SpecSection] | None) -> Iterator[ConfigChange]:
    return (change for _, change in _changed(before, after, model))


def _changed(
    before: object, after: object, model: type[SpecSection] | None
) -> Iterator[tuple[Path, ConfigChange]]:
    """Yield each change with the path of its key."""
    first, second = dict(_leaves(before)), dict(_leaves(after))
    texts = field_texts() if model is not None else {}
    for path in dict.fromkeys((*first, *second)):
        old, new = first.get(path, ABSENT), second.get(path, ABSENT)
        if old is not new and old != new and not (_is_nan(old) and _is_nan(new)):
            owner, name = _field(model, path)
            default = _default(owner.model_fields[name].default) if owner is not None else ABSENT
            meaning = (
                (texts.get(owner.__name__, {}).get(name) or owner.__doc__ or "") if owner is not None else ""
            )
            yield path, ConfigChange(_dotted(path), old, new, default, " ".join(meaning.split()))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield each leaf value with its path; a list without mappings or lists in it is one leaf."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, at))
    elif path or value != {}:  # a file without content, or that was deleted, has no keys
        yield path, value


def _dotted(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _field(model: type[SpecSection] | None, path: Path) -> tuple[type[SpecSection] | None, str]:
    """Return the model class and the field name that a path leads to, or the last known pair on the way."""
    found: tuple[type[SpecSection] | None, str] = None, ""
    part = model
    for step in path:
        if isinstance(step, int):
            continue
        if part is None or step not in part.model_fields:
            break
        found = part, step
        part = _part(part.model_fields[step].annotation)
    return found


def _part(annotation: object) -> type[SpecSection] | None:
    if isinstance(annotation, type) and issubclass(annotation, SpecSection):
        return annotation
    return next((part for argument in get_args(annotation) if (part := _part(argument)) is not None), None)


def _default(value: object) -> object:
    """Return the default, or `ABSENT` if it is the empty string or not a plain value."""
    return value if isinstance(value, str | int | float) and value != "" else ABSENT

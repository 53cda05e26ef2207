"""Checks a prime-rl config against the table of settings, for unknown settings and invalid values."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Generic, TypeVar

from prime_train.spec.tree import Listing, Mapping, Node, Scalar, TreeEntry
from prime_train.text.finite import number_of
from prime_train.trainers.prime_rl.reference.prime_rl_timeline import CHANGES
from prime_train.trainers.prime_rl.rules.fields import ROOT, FieldUse, Section, ValueKind, below, section
from prime_train.trainers.prime_rl.rules.schema_errors import (
    SchemaError,
    SchemaErrorKind,
    Where,
    missing,
    not_a_word,
    of_another_kind,
    out_of_bounds,
    plain,
    seen,
    unknown,
)

NULL = "None"
"""The text that stands for null, which TOML lacks."""
SCHEMA_ERRORS_MAX = 200
_YAML = (".yaml", ".yml")
_NUMBERS = ("int", "number")
Thing = TypeVar("Thing")


class Same(Generic[Thing]):
    """Wraps an object as a cache key that compares by identity, which is fast."""

    def __init__(self, it: Thing) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


def find_schema_errors(root: Mapping) -> tuple[SchemaError, ...]:
    """Return the schema errors in the order of the file, at most `SCHEMA_ERRORS_MAX`."""
    return _find_schema_errors(Same(root))


def is_null(node: Node | None) -> bool:
    return isinstance(node, Scalar) and node.value in (None, NULL)


@lru_cache(maxsize=4)
def _find_schema_errors(same: Same[Mapping]) -> tuple[SchemaError, ...]:
    """Return the schema errors, cached because several rules request those of one tree. A setting found under
    a wrong name is not also reported as missing.
    """
    found = tuple(islice(_table(same.it, (section(ROOT),), ()), SCHEMA_ERRORS_MAX))
    corrected = {error.corrected for error in found if error.corrected}
    return tuple(
        error
        for error in found
        if error.kind is not SchemaErrorKind.MISSING or error.violation.path not in corrected
    )


def _table(node: Mapping, sections: tuple[Section, ...], path: Where) -> Iterator[SchemaError]:
    for entry in node.entries:
        name = entry.key.replace("-", "_")
        setting = next((part.settings[name] for part in sections if name in part.settings), None)
        if setting is not None:
            yield from _value(entry.value, setting, setting.kinds, (*path, entry.key))
        elif not any(part.is_open for part in sections):
            yield from _unknown(entry, sections, path)
    if len(sections) == 1:
        given = {entry.key.replace("-", "_") for entry in node.entries}
        needed = (setting.name for setting in sections[0].settings.values() if setting.needed)
        yield from (missing((*path, name)) for name in needed if name not in given)


def _unknown(entry: TreeEntry, sections: tuple[Section, ...], path: Where) -> Iterator[SchemaError]:
    """Yield the error of an unknown key; for a removed section whose settings moved separately, one for each
    setting in it.
    """
    here = (*path, entry.key)
    name = plain(here)
    is_above = name not in CHANGES and any(old.startswith(f"{name}.") for old in CHANGES)
    if is_above and isinstance(entry.value, Mapping) and entry.value.entries:
        for inner in entry.value.entries:
            yield from _unknown(inner, (), here)
    else:
        yield unknown(here, sections)


def _value(node: Node, setting: FieldUse, kinds: tuple[ValueKind, ...], path: Where) -> Iterator[SchemaError]:
    names = {kind.name for kind in kinds}
    if "any" in names or (is_null(node) and "null" in names):
        return
    match node:
        case Mapping() if names & {"section", "by"}:
            yield from _inner(node, setting, path)
        case Mapping() if "map" in names:
            items = next(kind.items for kind in kinds if kind.name == "map")
            for entry in node.entries:
                yield from _value(entry.value, FieldUse(entry.key, items), items, (*path, entry.key))
        case Listing() if "list" in names:
            items = next(kind.items for kind in kinds if kind.name == "list")
            for at, item in enumerate(node.items):
                yield from _value(item, FieldUse(setting.name, items), items, (*path, at))
        case Scalar():
            yield from _scalar(node, kinds, path)
        case _:
            yield of_another_kind("a table" if isinstance(node, Mapping) else "a list", kinds, path)


def _inner(node: Mapping, setting: FieldUse, path: Where) -> Iterator[SchemaError]:
    by = setting.kind("by")
    tag = node.entry(by.text) if by is not None else None
    word = tag.value.value if tag is not None and isinstance(tag.value, Scalar) else None
    words = tuple(option for option, _ in by.options) if by is not None else ()
    if tag is not None and word not in words:
        yield not_a_word(str(word), words, (*path, tag.key))
        return
    yield from _table(node, below(setting, word if isinstance(word, str) else None), path)


def _scalar(node: Scalar, kinds: tuple[ValueKind, ...], path: Where) -> Iterator[SchemaError]:
    """Yield an error unless the value is valid. Like prime-rl, this accepts "5" as 5, but not true as a
    number.
    """
    names = {kind.name for kind in kinds}
    value, words = node.value, tuple(kind.text for kind in kinds if kind.name == "word")
    if value in words:
        return
    number = number_of(value)
    numeric = next((kind for kind in kinds if kind.name in _NUMBERS), None)
    if numeric is not None and number is not None and (numeric.name == "number" or number == int(number)):
        if not numeric.admits(number):
            yield out_of_bounds(numeric, node, path)
        return
    # A command-line argument is valid text, whatever it looks like.
    is_text = isinstance(value, str) or node.place.file.endswith(_YAML)
    if ("text" in names and is_text) or ("bool" in names and _is_bool(value)):
        return
    yield (
        not_a_word(value, words, path)
        if words and isinstance(value, str)
        else of_another_kind(seen(node), kinds, path)
    )


def _is_bool(value: object) -> bool:
    return (
        isinstance(value, bool)
        or value in (0, 1)
        or (isinstance(value, str) and value.lower() in ("true", "false"))
    )

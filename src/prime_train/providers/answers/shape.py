"""The shape of a JSON document: which fields it has, and of which types, without their values.

A field is named by its path, such as `data[].region.name`: `[]` stands for each item of a list, and `*` for
each key of an object whose keys are names themselves, such as those of types of machines.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

ROOT = ""
MISSING = "missing"
DEPTH_MAX = 20
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\S+")


class Kind(StrEnum):
    """The type of a value in JSON."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    NULL = "null"
    LIST = "list"
    OBJECT = "object"


def kind_of(value: object) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.FLAG
        case int() | float():
            return Kind.NUMBER
        case str():
            return Kind.TEXT
        case list():
            return Kind.LIST
        case _:
            return Kind.OBJECT


def shape(content: object, *, maps: Collection[str] = ()) -> dict[str, frozenset[str]]:
    """Return the types of each field by its path, in the order in which the fields come; `missing` is among
    them if an object of a list lacks the field that another one has. `maps`: the paths of objects whose keys
    are names.
    """
    found: dict[str, set[str]] = {}
    holders: dict[str, int] = {}
    having: dict[str, int] = {}
    for path, value in walked(content, maps=maps):
        found.setdefault(path, set()).add(kind_of(value).value)
        having[path] = having.get(path, 0) + 1
        if isinstance(value, dict):
            holders[path] = holders.get(path, 0) + 1
    for path, kinds in found.items():
        if _is_field(path) and having[path] < holders.get(parent_of(path) or ROOT, 0):
            kinds.add(MISSING)
    return {path: frozenset(kinds) for path, kinds in found.items()}


def walked(
    content: object, *, maps: Collection[str] = (), path: str = ROOT, depth: int = 0
) -> Iterator[tuple[str, object]]:
    """Yield every value in the document with its path, each object and list before what it holds; nothing
    deeper than `DEPTH_MAX`.
    """
    yield path, content
    if depth >= DEPTH_MAX:
        return
    if isinstance(content, dict):
        for name, value in content.items():
            yield from walked(
                value, maps=maps, path=joined(path, "*" if path in maps else str(name)), depth=depth + 1
            )
    elif isinstance(content, list):
        for value in content:
            yield from walked(value, maps=maps, path=f"{path}[]", depth=depth + 1)


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def values_at(content: object, path: str, *, maps: Collection[str] = ()) -> list[object]:
    """Return all values at the path."""
    return [value for at, value in walked(content, maps=maps) if at == path]


def merged(shapes: Sequence[Mapping[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    """Return the shape that all these documents together show; a field that one of them lacks may be
    missing.
    """
    found: dict[str, frozenset[str]] = {}
    for path in dict.fromkeys(path for each in shapes for path in each):
        lacking = any(path not in each and _has_place(path, each) for each in shapes)
        kinds = frozenset[str]().union(*(each.get(path, frozenset()) for each in shapes))
        found[path] = kinds | {MISSING} if lacking else kinds
    return found


def without_figures(content: object) -> object:
    """Return the document with all numbers and times replaced, so that two answers which differ in nothing
    else are equal.
    """
    match content:
        case dict():
            return {name: without_figures(value) for name, value in content.items()}
        case list():
            return [without_figures(value) for value in content]
        case bool() | None:
            return content
        case int() | float():
            return 0
        case str():
            return "" if _TIME.fullmatch(content) else content
        case _:
            return content


def differences(known: Mapping[str, frozenset[str]], seen: Mapping[str, frozenset[str]]) -> list[str]:
    """Return in words what differs between two shapes: fields that only one has, and types that the known one
    lacks. A list that is empty on one side says nothing about its items.
    """
    found = [
        f"{path}: new, {_listed(kinds)}"
        for path, kinds in seen.items()
        if path not in known and _has_place(path, known)
    ]
    found += [
        f"{path}: not there, {_listed(kinds)} expected"
        for path, kinds in known.items()
        if path not in seen and MISSING not in kinds and _has_place(path, seen)
    ]
    for path in known.keys() & seen.keys():
        more = seen[path] - known[path]
        if more:
            found.append(f"{path}: {_listed(more)}, not {_listed(known[path])}")
    return sorted(found)


def parent_of(path: str) -> str | None:
    """Return the path of what holds the field; None for the document itself."""
    if path == ROOT:
        return None
    return path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]


def _is_field(path: str) -> bool:
    """Return whether the path is that of a named field, and not of each item or each key."""
    return path != ROOT and not path.endswith("[]") and path.rpartition(".")[2] != "*"


def _has_place(path: str, other: Mapping[str, frozenset[str]]) -> bool:
    """Return whether the other document shows that it lacks the field: it has the object that would hold it.
    A list without items, an object without keys, and null show nothing.
    """
    parent = parent_of(path)
    return parent is None or (_is_field(path) and Kind.OBJECT in other.get(parent, ()))


def _listed(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))

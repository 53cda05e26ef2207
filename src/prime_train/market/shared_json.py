"""Frozen dataclasses as JSON values and back, by the types of their fields.

A mapping is a list of pairs, because its keys need not be texts. The two ends may be of different versions:
unknown fields are ignored, and missing ones have their defaults.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter

INTEGER_MAX = 253_402_300_799
"""The largest integer that is read: the last second of the year 9999. A later one cannot be shown as a
date.
"""
FLOAT_MAX = 1e18
_NUMBERS: Mapping[object, object] = {
    int: Annotated[int, Field(ge=0, le=INTEGER_MAX)],
    float: Annotated[float, Field(ge=0, le=FLOAT_MAX, allow_inf_nan=False)],
}


def as_plain(value: object, pairs_max: int) -> object:
    """Return the value made of lists, dicts, texts and numbers. Of each mapping, the first `pairs_max`
    entries are kept.
    """
    if is_dataclass(value):
        return {field.name: as_plain(getattr(value, field.name), pairs_max) for field in fields(value)}
    if isinstance(value, Mapping):
        return [
            [as_plain(key, pairs_max), as_plain(one, pairs_max)]
            for key, one in islice(value.items(), pairs_max)
        ]
    return [as_plain(one, pairs_max) for one in value] if isinstance(value, tuple) else value


def from_plain(kind: Any, content: object) -> Any:
    """Return the object of this type: a dataclass, a mapping, a tuple, one of these or None, or what pydantic
    parses. Numbers must be finite, not negative, and not absurdly large. Raises ValueError if the content
    does not fit.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _dataclass(kind, content)
    if origin in (UnionType, Union):
        return (
            None
            if content is None and NoneType in parts
            else from_plain(next(part for part in parts if part is not NoneType), content)
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pair = tuple[parts[0], parts[1]]  # type: ignore[valid-type] # the types are known only now
        return dict(from_plain(pair, one) for one in _list(content))
    if origin is tuple:
        listed = _list(content)
        kinds = parts[:1] * len(listed) if parts[1:] == (...,) else parts
        return tuple(from_plain(part, one) for part, one in zip(kinds, listed, strict=True))
    return _leaf(kind).validate_python(content)


def _dataclass(kind: Any, content: object) -> Any:
    if not isinstance(content, dict):
        raise ValueError(f"not an object of {kind.__name__}")
    given = {name: from_plain(hint, content[name]) for name, hint in _hints(kind).items() if name in content}
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"a field of {kind.__name__} is missing") from error


def _list(content: object) -> list[object]:
    if not isinstance(content, list):
        raise ValueError("not a list")
    return content


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


@cache
def _leaf(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(_NUMBERS.get(kind, kind))

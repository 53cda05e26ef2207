"""Conversion between prime-train's values and the JSON that stores keep."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

PROBLEM_CHARS_MAX = 300

_Value = TypeVar("_Value")
_parsers: dict[type, TypeAdapter[Any]] = {}


def dump(value: object) -> str:
    """Return `value` as JSON that loads again. Pydantic's own JSON would turn an infinite number into null, and half a surrogate pair (from
    an odd file name in an error's text) cannot be encoded at all."""
    return readable(json.dumps(_parser(type(value)).dump_python(value, mode="json"), ensure_ascii=False, separators=(",", ":")))


def load(kind: type[_Value], text: str) -> _Value:
    """Return the value of type `kind` in `text`. Raises ValueError if the JSON does not fit; `first_problem` describes it."""
    value: _Value = _parser(kind).validate_json(text)
    return value


def readable(text: str) -> str:
    """Return `text` with halves of surrogate pairs replaced."""
    return text.encode("utf-8", "replace").decode()


def first_problem(error: ValueError) -> str:
    """Return the first problem without the values, which pydantic's own message would contain."""
    if not isinstance(error, ValidationError):
        return str(error)[:PROBLEM_CHARS_MAX]
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:PROBLEM_CHARS_MAX]


def _parser(kind: type) -> TypeAdapter[Any]:
    """Return the type's parser, built on first use: building one takes as long as parsing a hundred values."""
    if kind not in _parsers:
        _parsers[kind] = TypeAdapter(kind)
    return _parsers[kind]

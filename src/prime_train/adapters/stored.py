"""Our values as the JSON that stores keep, and back."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

PROBLEM_CHARS_MAX = 300

_Value = TypeVar("_Value")
_parsers: dict[type, TypeAdapter[Any]] = {}


def dump(value: object) -> str:
    """JSON that loads again whatever is in the value: pydantic's own would turn an infinite number into null, and half a surrogate pair
    (from an odd file name in an error's text) cannot be written at all."""
    return readable(json.dumps(_parser(type(value)).dump_python(value, mode="json"), ensure_ascii=False, separators=(",", ":")))


def load(kind: type[_Value], text: str) -> _Value:
    """Raises ValueError where the text is no JSON of such a value; `first_problem` says why."""
    value: _Value = _parser(kind).validate_json(text)
    return value


def readable(text: str) -> str:
    """Without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def first_problem(error: ValueError) -> str:
    """In words, without the values: pydantic's own message would print them."""
    if not isinstance(error, ValidationError):
        return str(error)[:PROBLEM_CHARS_MAX]
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:PROBLEM_CHARS_MAX]


def _parser(kind: type) -> TypeAdapter[Any]:
    """Made when it is first used: to make one takes as long as a hundred values."""
    if kind not in _parsers:
        _parsers[kind] = TypeAdapter(kind)
    return _parsers[kind]

"""Reads a valid heartbeat without pydantic.

Loading pydantic takes longer than everything else a Lambda needs to receive a heartbeat, and nearly all heartbeats are valid. So this
module never reports a mistake: input that it does not fully understand is left to `Heartbeat`, and what it reads has the same values that
`Heartbeat` would have. Texts are the exception: they stay as sent, and `Heartbeat`, through which every display reads them, neutralises
them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from prime_train.core.fast_parsing.heartbeat_fields import FIELDS
from prime_train.core.keys import is_identity, is_run_id

INTEGER_MAX = 2**53
NUMBER_MAX = 1.7976931348623157e308

Check = Callable[[Any], bool]
Fields = dict[str, tuple["Check | Fields", tuple[Any, ...]]]
"""The fields of a heartbeat, or of a part of one, by name. Each is a pair: the check of its value or, for a nested part, that part's
fields; and a tuple with its default, which is empty if the field is required. Only a value with the default None may be None."""


class _Unsure(Exception):
    """The heartbeat is not fully understood: it may be valid or not."""


def read(text: str) -> dict[str, Any] | None:
    """Return the fields of the heartbeat in order, without those that have their default value; nested parts likewise. None: not fully
    understood, and possibly still valid."""
    try:
        return _part(_HEARTBEAT, _DECODER.decode(text))
    except (_Unsure, ValueError, RecursionError):
        return None


def dumped(values: Mapping[str, Any]) -> str:
    """Return JSON that `Heartbeat` can read."""
    return _ENCODER.encode(values)


def _part(fields: Fields, given: object) -> dict[str, Any]:
    if type(given) is not dict:
        raise _Unsure
    checked, known = {}, 0
    for name, (check, default) in fields.items():
        if name not in given:
            if not default:
                raise _Unsure
            continue
        known += 1
        value = given[name]
        if value is None:
            if default != (None,):
                raise _Unsure
        elif isinstance(check, dict):
            checked[name] = _part(check, value)
        elif not check(value):
            raise _Unsure
        elif not default or value != default[0]:
            checked[name] = value
    if known != len(given):
        raise _Unsure
    return checked


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _Unsure
    return values


def _no_number(name: str) -> object:
    """Reject NaN and infinities, which are not JSON."""
    raise _Unsure


# ----------------------------------------------------------------------------------------------------------------- kinds of values


def _integer(least: int | None, most: int | None) -> Check:
    low, high = -INTEGER_MAX if least is None else least, INTEGER_MAX if most is None else most
    return lambda value: type(value) is int and low <= value <= high


def _number(least: float | None, most: float | None) -> Check:
    low, high = -NUMBER_MAX if least is None else least, NUMBER_MAX if most is None else most
    return lambda value: type(value) is float and low <= value <= high


def _text(most: int) -> Check:
    return lambda value: type(value) is str and len(value) <= most and (value.isascii() or _is_unicode(value))


def _is_unicode(value: str) -> bool:
    """Return whether the text has no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flag() -> Check:
    return lambda value: value is True or value is False


def _word(*words: str) -> Check:
    known = frozenset(words)
    return lambda value: type(value) is str and value in known


def _run_id() -> Check:
    return lambda value: type(value) is str and is_run_id(value)


def _identity() -> Check:
    return lambda value: type(value) is str and (not value or is_identity(value))


_KINDS: dict[str, Callable[..., Check]] = {
    "integer": _integer,
    "number": _number,
    "text": _text,
    "flag": _flag,
    "word": _word,
    "run_id": _run_id,
    "identity": _identity,
}


def _fields(part: str) -> Fields:
    return {
        name: (_fields(limits[0]) if kind == "part" else _KINDS[kind](*limits), tuple(default))
        for name, ((kind, *limits), *default) in FIELDS[part].items()
    }


_HEARTBEAT = _fields("Heartbeat")
_DECODER = json.JSONDecoder(object_pairs_hook=_each_once, parse_constant=_no_number)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)

"""The results of a step: a JSON object of numbers, which its command writes to a file."""

import json
from typing import Any, NoReturn

from prime_train.spec.requirements import violation_of_name

FILE_BYTES_MAX = 64 * 1024
RESULTS_MAX = 200
"""Number of results of one step."""
NUMBER_MAX = 1e300
SHOWN_CHARS = 60
_KINDS = {str: "text", bool: "true or false", list: "a list", dict: "an object", type(None): "null"}


class InvalidResults(ValueError):
    """The file does not hold results; the message says where it is wrong."""


def parse_results(data: bytes) -> dict[str, float]:
    """Return the results by name. Raises InvalidResults unless the data are one JSON object of finite
    numbers.
    """
    if len(data) > FILE_BYTES_MAX:
        raise InvalidResults(f"it has more than {FILE_BYTES_MAX} bytes")
    try:
        values = json.loads(data, object_pairs_hook=_each_once, parse_constant=_not_finite)
    except InvalidResults:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidResults(f"it is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise InvalidResults(
            f'it holds {_kind(values)}; write an object of numbers, such as {{"accuracy": 0.71}}'
        )
    if len(values) > RESULTS_MAX:
        raise InvalidResults(f"it has {len(values)} results; at most {RESULTS_MAX} are allowed")
    return {name: _number(name, value) for name, value in values.items()}


def _number(name: str, value: object) -> float:
    shown = repr(name[:SHOWN_CHARS])
    if why := violation_of_name(name):
        raise InvalidResults(f"{shown} cannot be the name of a result: {why}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidResults(f"{shown} is {_kind(value)}, not a number")
    if not abs(value) <= NUMBER_MAX:
        raise InvalidResults(f"{shown} is not finite, or too large: at most {NUMBER_MAX:g} is allowed")
    return float(value)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        twice = next(
            name for number, (name, _) in enumerate(pairs) if name in [other for other, _ in pairs[:number]]
        )
        raise InvalidResults(f"{twice[:SHOWN_CHARS]!r} is there twice")
    return values


def _not_finite(name: str) -> NoReturn:
    raise InvalidResults(f"it contains {name}, which is not a finite number")

"""Parsing of sizes and durations written by people."""

import math
import re

NUMBER_MAX = 2**53
"""The largest number in a spec: every whole number up to it is exact in a float, in JSON and in each
store.
"""
SHOWN_CHARS = 60

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(value: object) -> object:
    """Return bytes from `"1 MB"`, `"2GiB"` or a plain number. Values other than text are returned unchanged
    for later validation. Raises ValueError for a text that is not a size.
    """
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value)
    if not found or found.group(2).lower() not in _UNITS:
        raise ValueError(
            f"{value[:SHOWN_CHARS]!r} is not a size; write bytes or a number with a unit, such as 1 MB or 2 "
            "GiB"
        )
    size = float(found.group(1)) * _UNITS[found.group(2).lower()]
    if size > NUMBER_MAX:
        raise ValueError(f"{value[:SHOWN_CHARS]!r} is too large: at most {NUMBER_MAX} bytes are allowed")
    return int(size)


_SECONDS: dict[str, int] = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_NUMBER = re.compile(r"\s*\d{1,15}(?:\.\d{1,15})?\s*")
_SPAN = re.compile(r"\s*(?:\d{1,15}(?:\.\d{1,15})?\s*(?:s|sec|m|min|h|d)\s*)+", re.IGNORECASE)
_SPAN_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)


def parse_seconds(value: object) -> object:
    """Return whole seconds, rounded up, from `"90s"`, `"5m"` or `"1h 30m"`; a plain number in a text is
    seconds. Values other than text are returned unchanged for later validation. Raises ValueError for a text
    that is not a duration.
    """
    found = _span(value, unit_s=1)
    return math.ceil(found) if isinstance(found, float) and isinstance(value, str) else found


def parse_hours(value: object) -> object:
    """Return hours from the same texts as `parse_seconds`; a plain number is hours."""
    return _span(value, unit_s=3600)


def parse_gib(value: object) -> object:
    """Return GiB (2^30 bytes) from `"100GB"` or `"1.5 TiB"`; a plain number in a text is GiB."""
    if not isinstance(value, str):
        return value
    if _NUMBER.fullmatch(value):
        return float(value)
    size = parse_size(value)
    assert isinstance(size, int)
    return size / 2**30


def parse_integer_gib(value: object) -> object:
    """Return the result of `parse_gib`, rounded up for texts."""
    found = parse_gib(value)
    return math.ceil(found) if isinstance(found, float) and isinstance(value, str) else found


def _span(value: object, unit_s: int) -> object:
    if not isinstance(value, str):
        return value
    if _NUMBER.fullmatch(value):
        return float(value)
    if not _SPAN.fullmatch(value[:100]) or len(value) > 100:
        raise ValueError(
            f"{value[:SHOWN_CHARS]!r} is not a duration; write a number with a unit, such as 90s, 5m, 2h or "
            "1d"
        )
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in _SPAN_PART.findall(value)) / unit_s

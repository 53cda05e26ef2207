"""Sizes as people write them."""

import re

NUMBER_MAX = 2**53
"""Of any number in a spec: every whole number up to it is exact in a float, in JSON and in each store."""
SHOWN_CHARS = 60

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(value: object) -> object:
    """Bytes from `"1 MB"`, `"2GiB"` or a plain number; anything but a text is returned as it is for others to refuse."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value)
    if not found or found.group(2).lower() not in _UNITS:
        raise ValueError(f"{value[:SHOWN_CHARS]!r} is not a size; write bytes or a number with a unit, such as 1 MB or 2 GiB")
    size = float(found.group(1)) * _UNITS[found.group(2).lower()]
    if size > NUMBER_MAX:
        raise ValueError(f"{value[:SHOWN_CHARS]!r} is larger than any file: {NUMBER_MAX} bytes are the most")
    return int(size)

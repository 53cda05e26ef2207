"""Sizes and durations as other tools write them."""

import math
import re

_BINARY = {"": 1.0, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_DECIMAL = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kmgt]?i?)b?", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "": 1}
GIB_MAX = 100_000


def gib_of(text: str, *, decimal: bool = False) -> int | None:
    """Return a size such as 200GB, 200Gi or 256 in whole GiB, rounded up; None if it is none. `decimal`: a
    bare number counts bytes, and GB are 10^9 of them, as in Kubernetes; otherwise both are GiB, as disks are
    sold.
    """
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].lower() if found is not None else "?"
    units = (
        {**_BINARY, **_DECIMAL}
        if decimal
        else {**_BINARY, "": 2.0**30, **{unit: _BINARY[f"{unit}i"] for unit in _DECIMAL}}
    )
    if found is None or unit not in units:
        return None
    gib = math.ceil(float(found[1]) * units[unit] / 2**30)
    return gib if 1 <= gib <= GIB_MAX else None


def lower_end(text: str) -> tuple[str, bool]:
    """Return the lower end of a range such as 24GB..80GB or 32+, and whether the text is a range with an
    upper end.
    """
    low, dots, high = text.strip().partition("..")
    return low.strip().removesuffix("+"), bool(dots and high.strip())


def hours_of(text: str) -> float | None:
    """Return a duration such as 6h, 90m or 3600 (seconds) in hours; None if it is none."""
    found = re.fullmatch(r"([0-9]{1,9})\s*([smhdw]?)", text.strip())
    hours = int(found[1]) * _SECONDS[found[2]] / 3600 if found else 0
    return round(hours, 2) if hours >= 0.01 else None


def usd_of(text: str) -> float | None:
    """Return an amount such as 4.5 or $4.50 in US dollars; None if it is none."""
    found = re.fullmatch(r"\$?([0-9]{1,6}(\.[0-9]{1,6})?)", text.strip())
    return float(found[1]) if found and float(found[1]) > 0 else None

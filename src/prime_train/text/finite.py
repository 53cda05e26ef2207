"""Numbers as logs and trainers' configs write them: as numbers, or as texts such as 1e-5, which YAML takes
for a text.
"""

import math


def number_of(value: object) -> float | None:
    """Return a finite float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None

"""Sizes, amounts and ranges as `find` and the other estimates show them."""

import math

from prime_train.estimate.cost.duration import HOUR_S, Between


def large(count: float) -> str:
    """Return a count as text, such as 8.2B, 597M or 500k."""
    for unit, word in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{_rounded(count / unit)}{word}"
    return f"{count:.0f}"


def time_range(between: Between) -> str:
    """Return a range of seconds as text, such as "12-45 min", "1.2-2.4 h" or "3-8 d"."""
    unit_s, word = next(
        (
            (s, word)
            for most_s, s, word in ((2 * HOUR_S, 60, "min"), (72 * HOUR_S, HOUR_S, "h"))
            if between.high < most_s
        ),
        (86_400, "d"),
    )
    return f"{_range(between.low / unit_s, between.high / unit_s)} {word}"


def usd_range(between: Between) -> str:
    """Return a range of dollars as text, such as "$1.2-4.5" or "$11-22"."""
    return f"${_range(between.low, between.high)}"


def size_range(low_bytes: float, high_bytes: float) -> str:
    """Return a range of bytes in GiB without the unit; GPUs are sold by GiB, although their makers write
    GB.
    """
    return _range(low_bytes / 2**30, high_bytes / 2**30)


def _range(low: float, high: float) -> str:
    words = (_rounded(low), _rounded(high))
    return words[0] if words[0] == words[1] else "-".join(words)


def _rounded(amount: float) -> str:
    """Return the amount with two significant digits, as more would be spurious."""
    if amount >= 100:
        step = 10 ** (math.floor(math.log10(amount)) - 1)
        return f"{round(amount / step) * step:,}"
    if amount >= 9.95:
        return f"{amount:.0f}"
    return f"{amount:.1f}" if amount >= 0.1 or amount == 0 else f"{amount:.2g}"

"""Parses and formats sizes, amounts and ranges for `find`."""

import math
import re

from prime_train.core.errors import UsageError
from prime_train.estimate.cost.duration import HOUR_S, Between

_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([kmbgt]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_PRICE = re.compile(r"\$?\s*(\d+(?:\.\d+)?)\s*(?:\$|usd)?\s*(?:/\s*h(?:our)?)?", re.IGNORECASE)
TOKENS_MAX = 10**15


def tokens(text: str) -> float:
    """Return the number of tokens in a text such as 100M, 1.5B, 2e9 or 100,000,000. Raises UsageError if it is not a number of tokens."""
    found = _COUNT.fullmatch(text.strip().replace(",", "").replace("_", ""))
    count = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    if not 0 < count <= TOKENS_MAX:
        raise UsageError(f"--tokens {text}: no number of tokens", fix="write one such as 500k, 100M or 1.5B")
    return count


def price(text: str) -> float:
    """Return the dollars per hour in a text such as 20, 2.50, $20 or $20/h. Raises UsageError if it is not a price."""
    found = _PRICE.fullmatch(text.strip())
    usd = float(found[1]) if found else 0.0
    if not 0 < usd < math.inf:
        raise UsageError(f"--budget {text}: no price", fix="write the most dollars that the whole machine may cost an hour, such as 20")
    return usd


def kinds(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def large(count: float) -> str:
    """Return a count as text, such as 8.2B, 597M or 500k."""
    for unit, word in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{_rounded(count / unit)}{word}"
    return f"{count:.0f}"


def time_range(between: Between) -> str:
    """Return a range of seconds as text, such as "12-45 min", "1.2-2.4 h" or "3-8 d"."""
    unit_s, word = next(
        ((s, word) for most_s, s, word in ((2 * HOUR_S, 60, "min"), (72 * HOUR_S, HOUR_S, "h")) if between.high < most_s), (86_400, "d")
    )
    return f"{_range(between.low / unit_s, between.high / unit_s)} {word}"


def usd_range(between: Between) -> str:
    """Return a range of dollars as text, such as "$1.2-4.5" or "$11-22"."""
    return f"${_range(between.low, between.high)}"


def size_range(low_bytes: float, high_bytes: float) -> str:
    """Return a range of bytes in GiB without the unit; GPUs are sold by GiB, although their makers write GB."""
    return _range(low_bytes / 2**30, high_bytes / 2**30)


def percent_range(between: Between) -> str:
    return f"{between.low * 100:.2g} to {between.high * 100:.2g} %"


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

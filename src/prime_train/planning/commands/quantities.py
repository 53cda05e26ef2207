"""Amounts as people type them on the command line: tokens, prices, and lists of GPUs."""

import math
import re

from prime_train.errors import UsageError
from prime_train.planning.limits import TOKENS_MAX

_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([kmbgt]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_PRICE = re.compile(r"\$?\s*(\d+(?:\.\d+)?)\s*(?:\$|usd)?\s*(?:/\s*h(?:our)?)?", re.IGNORECASE)


def tokens(text: str) -> float:
    """Return the number of tokens in a text such as 100M, 1.5B, 2e9 or 100,000,000. Raises UsageError if it
    is not a number of tokens.
    """
    found = _COUNT.fullmatch(text.strip().replace(",", "").replace("_", ""))
    count = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    if not 0 < count <= TOKENS_MAX:
        raise UsageError(
            f"--tokens {text} is not a number of tokens", fix="write one such as 500k, 100M or 1.5B"
        )
    return count


def price(text: str) -> float:
    """Return the dollars per hour in a text such as 20, 2.50, $20 or $20/h. Raises UsageError if it is not a
    price.
    """
    found = _PRICE.fullmatch(text.strip())
    usd = float(found[1]) if found else 0.0
    if not 0 < usd < math.inf:
        raise UsageError(
            f"--budget {text} is not a price",
            fix="write the highest price of a machine in dollars per hour, such as 20",
        )
    return usd


def kinds(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())

"""The highest price at which a machine is rented."""

import math

PRICE_TOLERANCE = 0.05
"""Fraction by which a pod may cost more than its offer, but never more than the run allows: prices change between the list and the
order."""


def ceiling_usd(usd: float, most_usd: float | None) -> float:
    """Return the highest price per hour for an offer of `usd`. `most_usd`: what the run allows."""
    # Never 0, which has meant both "no ceiling" and "nothing may be paid".
    return min(math.ceil(usd * (1 + PRICE_TOLERANCE) * 10**4) / 10**4, most_usd if most_usd is not None else math.inf)

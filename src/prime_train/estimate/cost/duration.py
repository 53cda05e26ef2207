"""Ranges of times and other amounts: before a run nothing more exact is known."""

import math
from dataclasses import dataclass

HOUR_S = 3600.0


@dataclass(frozen=True)
class Between:
    """A range of finite, non-negative amounts; both ends are included. Raises ValueError for any other
    range.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < math.inf:
            raise ValueError(f"{self.low} to {self.high} is not a range of finite amounts")

    @property
    def expected(self) -> float:
        """Return the geometric mean of both ends."""
        return math.sqrt(self.low * self.high)

    def __mul__(self, factor: "Between") -> "Between":
        return Between(self.low * factor.low, self.high * factor.high)

    def __add__(self, more: "Between") -> "Between":
        return Between(self.low + more.low, self.high + more.high)

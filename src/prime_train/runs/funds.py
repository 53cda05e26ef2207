"""The money left for machines at providers that charge a prepaid wallet."""

from dataclasses import dataclass

WARN_S = 2 * 3600
"""Seconds of funds at which people are notified."""
RESERVE_S = 900
"""Seconds of funds, beyond the time for a flush, at which running attempts are ordered to save and leave."""
LAUNCH_S = 3600
"""Seconds of funds required to rent a machine: well above the reserve, or the new machine would be ordered to
leave right away.
"""


@dataclass(frozen=True)
class Funds:
    """A wallet, with the current hourly cost of everything that it pays for, including pods of other people
    and tools.
    """

    provider: str
    balance_usd: float
    burn_usd_per_hour: float

    def left_s(self, more_usd_per_hour: float = 0.0) -> float:
        """Return the seconds until the wallet is empty at the present burn plus `more_usd_per_hour`; infinite
        if nothing is paid.
        """
        burn = self.burn_usd_per_hour + more_usd_per_hour
        if burn <= 0:
            return float("inf") if self.balance_usd > 0 else 0.0
        return max(0.0, self.balance_usd) / burn * 3600


@dataclass(frozen=True)
class Bill:
    """The total cost of an ended pod as the provider reports it."""

    pod_id: str
    name: str
    usd: float
    created_s: int = 0
    ended_s: int | None = None
    """When the pod was created and ended; 0 and None: not reported."""

"""What is left to pay machines with, where a provider takes it from a wallet that may run dry."""

from dataclasses import dataclass

WARN_S = 2 * 3600
RESERVE_S = 900
"""What must be left, beyond the time a flush may take, when running attempts are told to save and leave."""
LAUNCH_S = 3600
"""What must be left for a machine to be rented: well above the reserve, lest it be told to leave as soon as it is there."""


@dataclass(frozen=True)
class Funds:
    """A wallet, and all that is paid from it now, whoever rented it."""

    provider: str
    balance_usd: float
    burn_usd_per_hour: float

    def left_s(self, more_usd_per_hour: float = 0.0) -> float:
        """Seconds until it is empty at the present burn and `more`; infinite where nothing is paid."""
        burn = self.burn_usd_per_hour + more_usd_per_hour
        if burn <= 0:
            return float("inf") if self.balance_usd > 0 else 0.0
        return max(0.0, self.balance_usd) / burn * 3600


@dataclass(frozen=True)
class Bill:
    """What a pod that is no more cost in all, in the provider's own words."""

    pod_id: str
    name: str
    usd: float
    created_s: int = 0
    ended_s: int | None = None
    """From when to when it was there; 0 and None: not told."""

"""The port `Account` on Prime Intellect: what is in the wallet, what is paid from it, and what ended pods cost.

Credit is taken each minute, and at a balance of 0 every pod is deleted at once, without notice. So what is left is told together with
what all pods of the account cost, those of other people and tools among them.
"""

import logging
import time
from collections.abc import Callable, Sequence

from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.adapters.pods_prime.marks import Mark
from prime_train.adapters.pods_prime.models import Rented
from prime_train.adapters.pods_prime.offers import PROVIDER
from prime_train.adapters.pods_prime.statuses import status_of
from prime_train.core.funds import Bill, Funds
from prime_train.core.verdict import PodStatus
from prime_train.ports import TemporaryError

FUNDS_S = 30.0
BILLS_S = 600.0

log = logging.getLogger(__name__)


class PrimeAccount:
    """Asks for the wallet every `FUNDS_S` at most, for bills every `BILLS_S`. `clock`: seconds that only rise."""

    provider = PROVIDER

    def __init__(self, client: PrimeClient, mark: Mark, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._mark, self._clock = client, mark, clock
        self._funds: Funds | None = None
        self._funds_at = self._bills_at = -BILLS_S

    def funds(self) -> Funds | None:
        """The team's wallet, where one pays. TemporaryError also for one that is not in USD."""
        now_s = self._clock()
        if self._funds is None or now_s - self._funds_at >= FUNDS_S:
            self._funds = None
            wallet = self._client.wallet()
            if wallet.currency.upper() != "USD":
                raise TemporaryError(f"the wallet is in {wallet.currency[:8]}, and only USD is understood")
            self._funds = Funds(PROVIDER, wallet.balance_usd, sum(map(_burn_usd, self._client.pods())))
            self._funds_at = now_s
        return self._funds

    def bills(self) -> Sequence[Bill]:
        now_s = self._clock()
        if now_s - self._bills_at < BILLS_S:
            return []
        self._bills_at = now_s
        told = [(row, self._mark.without(row.name or "")) for row in self._client.history()]
        return [Bill(row.id, name, row.total_billed_price) for row, name in told if name is not None and row.total_billed_price is not None]


def _burn_usd(rented: Rented) -> float:
    return 0.0 if status_of(rented) is PodStatus.GONE else rented.price_hr or 0.0

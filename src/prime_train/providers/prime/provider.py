"""The port `Provider` on Prime Intellect."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Unpack

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.port import Account
from prime_train.providers.prime.client import TITLE, PrimeClient
from prime_train.providers.prime.offers import PROVIDER
from prime_train.providers.prime.pods import PrimePods
from prime_train.providers.prime.settings import read_settings
from prime_train.providers.rental.account import Kept
from prime_train.providers.rental.account_check import AccountWords
from prime_train.providers.rental.parsing import second
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import Plane
from prime_train.providers.rental.provider import RentalProvider
from prime_train.providers.rental.reasons import short
from prime_train.runs.funds import Bill, Funds

ACCOUNT = "PRIME_TRAIN_PRIME_ACCOUNT"
WORDS = AccountWords(TITLE, ACCOUNT)
TEAM = "team:"

log = logging.getLogger(__name__)


def account_names(client: PrimeClient) -> Iterator[str]:
    """Yield the names: the team's, if one pays, and the person's, because older versions stored that one for
    teams, too. None if they cannot be queried.
    """
    for ask in (_team, _person) if client.team_id else (_person,):
        try:
            yield ask(client)
        except PermanentError as error:
            log.warning("the account of the key cannot be queried: %s", error)


def _team(client: PrimeClient) -> str:
    """Return the team's name. The wallet is read because only a member can read it; the configured id alone
    proves nothing.
    """
    client.wallet()
    return f"{TEAM}{client.team_id}"


def _person(client: PrimeClient) -> str:
    return client.whoami().id


class PrimeProvider(RentalProvider[PrimePods]):
    """Machines of many providers behind one API and one wallet."""

    name, words = PROVIDER, WORDS

    def account(self) -> Account:
        return PrimeAccount(self._client, PodMark.of(self._context.master), self._pods.burn_usd_per_hour)

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> PrimePods:
        return PrimePods(self._client, self._context.install, public_key=public_key, **plane)

    def _account_names(self) -> Iterable[str]:
        return account_names(self._client)

    @cached_property
    def _client(self) -> PrimeClient:
        environment = self._context.environment
        settings = read_settings(environment, Path(environment.get("HOME") or Path.home()))
        return PrimeClient(settings, witness=self._context.witness)


# The port `Account` on Prime Intellect: the wallet's balance, its hourly spending, and the bills of ended
# pods.
#
# Credit is taken each minute, and at a balance of 0 every pod is deleted at once, without notice. So the
# balance is reported together with the cost of all pods of the account, including those of other people and
# tools.
FUNDS_S = 30.0
BILLS_S = 600.0
BILLED_AFTER_S = 900
"""Seconds after a pod's end at which its bill is final; costs are taken by the minute."""


class PrimeAccount:
    """Wallet and bills of one Prime account. The wallet is requested at most every `FUNDS_S` seconds, the
    bills at most every `BILLS_S`. `burn` returns the hourly cost in USD of all pods that are paid from the
    wallet with this id, or whose wallet is unknown. `clock` returns monotonic seconds; `wall` the time of
    day, as in Prime's timestamps.
    """

    provider = PROVIDER

    def __init__(
        self,
        client: PrimeClient,
        mark: PodMark,
        burn: Callable[[str | None], float],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._mark, self._burn, self._clock, self._wall = client, mark, burn, clock, wall
        self._wallet = Kept(client.wallet, FUNDS_S, clock)
        self._billed_s = -BILLS_S

    def funds(self) -> Funds | None:
        """Return the funds of the team's wallet if a team pays, else of the person's. Raises TemporaryError
        also if the wallet is not in USD. A failure is kept, and not retried before `FUNDS_S` have passed.
        """
        wallet = self._wallet()
        if wallet.currency.upper() != "USD":
            raise TemporaryError(f"the wallet is in {short(wallet.currency[:8])}, but only USD is supported")
        return Funds(PROVIDER, wallet.balance_usd, self._burn(wallet.wallet_id))

    def bills(self) -> Sequence[Bill]:
        now_s = self._clock()
        if now_s - self._billed_s < BILLS_S:
            return []
        self._billed_s = now_s
        before_s = self._wall() - BILLED_AFTER_S
        named_rows = [(row, self._mark.without(row.name or "")) for row in self._client.history()]
        return [
            Bill(row.id, name, row.total_billed_price, second(row.created_at), second(row.terminated_at))
            for row, name in named_rows
            if name is not None
            and row.total_billed_price is not None
            and 0 < second(row.terminated_at) <= before_s
        ]

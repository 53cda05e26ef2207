"""The port `Provider` on Vast.ai."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Unpack

from prime_train.errors import TemporaryError
from prime_train.providers.port import Account
from prime_train.providers.rental.account import Kept
from prime_train.providers.rental.account_check import AccountWords
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import Plane
from prime_train.providers.rental.provider import RentalProvider
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.offers import PROVIDER
from prime_train.providers.vast.pods import VastPods
from prime_train.providers.vast.search import Searches
from prime_train.providers.vast.settings import TITLE, VastSettings, read_settings
from prime_train.runs.funds import Bill, Funds

# The port `Account` on Vast.ai: what is left to spend, what it pays for now, what ended machines have cost,
# and the name of the account.
#
# Accounts pay in advance. At a balance of 0 all instances are stopped, and without a card they are deleted
# later.
ACCOUNT = "PRIME_TRAIN_VAST_ACCOUNT"
WORDS = AccountWords(TITLE, ACCOUNT)
FUNDS_S = 30.0
BILLS_S = 600.0
BILLED_AFTER_S = 1800
"""Seconds after an instance's end at which its bill is final; traffic is charged later than time."""
BILLED_DAYS = 30
"""Days for which charges are read; an instance that began earlier is left out, because part of its charges
may be missing.
"""
DAY_S = 86_400

log = logging.getLogger(__name__)


class VastAccount:
    """Balance and bills of one account. The balance is requested at most every `FUNDS_S` seconds, the bills
    at most every `BILLS_S`. `burn` returns the hourly cost in USD of all instances. `clock` returns monotonic
    seconds; `wall` the time of day.
    """

    provider = PROVIDER

    def __init__(
        self,
        client: VastClient,
        mark: PodMark,
        burn: Callable[[], float],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._mark, self._burn, self._clock, self._wall = client, mark, burn, clock, wall
        self._user = Kept(client.user, FUNDS_S, clock)
        self._billed_s: float | None = None

    def funds(self) -> Funds | None:
        """Return what is left to spend. A failure is kept, and not retried before `FUNDS_S` have passed."""
        left_usd = self._user().left_usd
        if left_usd is None:
            raise TemporaryError(f"{TITLE} reports no balance")
        return Funds(PROVIDER, left_usd, self._burn())

    def bills(self) -> Sequence[Bill]:
        """Return what ended instances have cost, with their disks and their traffic."""
        now_s = self._clock()
        if self._billed_s is not None and now_s - self._billed_s < BILLS_S:
            return []
        self._billed_s = now_s
        last_s = int(self._wall())
        first_s = (last_s // DAY_S - BILLED_DAYS) * DAY_S
        charges = self._client.charges(first_s, last_s)
        if not charges:
            return []
        # An instance that still exists has charges up to now, so that they do not tell whether it has ended.
        alive = {rented.pod_id for rented in self._client.pods()}
        named = [
            (charge, self._mark.without(charge.label))
            for charge in charges
            if charge.pod_id and charge.pod_id not in alive
        ]
        return [
            Bill(charge.pod_id, name, charge.amount, charge.start, charge.end)
            for charge, name in named
            if name and charge.start >= first_s and charge.end <= last_s - BILLED_AFTER_S
        ]


def account_names(client: VastClient) -> Iterator[str]:
    """Yield the name of the account that the key belongs to. Raises TemporaryError if it cannot be
    determined, so that nothing is concluded from what the account does not know.
    """
    yield str(client.user().id)


class VastProvider(RentalProvider[VastPods]):
    """Machines of Vast.ai's hosts, with one balance."""

    name, words = PROVIDER, WORDS

    def account(self) -> Account:
        return VastAccount(self._client, PodMark.of(self._context.master), self._pods.burn_usd_per_hour)

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> VastPods:
        return VastPods(
            self._client,
            self._context.install,
            searches=self._searches,
            public_key=public_key,
            bid_factor=self._settings.bid_factor,
            **plane,
        )

    def _account_names(self) -> Iterable[str]:
        return account_names(self._client)

    @cached_property
    def _searches(self) -> Searches:
        return Searches(self._client)

    @cached_property
    def _settings(self) -> VastSettings:
        return read_settings(self._context.environment)

    @cached_property
    def _client(self) -> VastClient:
        return VastClient(self._settings, witness=self._context.witness)

"""The port `Provider` on Prime Intellect."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Unpack

from prime_train.adapters.pods_prime.account import PrimeAccount
from prime_train.adapters.pods_prime.account_names import WORDS, account_names
from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.adapters.pods_prime.offers import PROVIDER
from prime_train.adapters.pods_prime.pods import PrimePods
from prime_train.adapters.pods_prime.settings import read_settings
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.adapters.rental_api.pods import Plane
from prime_train.adapters.rental_api.provider import RentalProvider
from prime_train.ports import Account


class PrimeProvider(RentalProvider[PrimePods]):
    """Machines of many providers behind one API and one wallet."""

    name, words = PROVIDER, WORDS

    def account(self) -> Account:
        return PrimeAccount(self._client, Mark.of(self._context.master), self._pods.burn_usd_per_hour)

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> PrimePods:
        return PrimePods(self._client, self._context.install, public_key=public_key, **plane)

    def _account_names(self) -> Iterable[str]:
        return account_names(self._client)

    @cached_property
    def _client(self) -> PrimeClient:
        environment = self._context.environment
        settings = read_settings(environment, Path(environment.get("HOME") or Path.home()))
        return PrimeClient(settings, witness=self._context.witness)

"""The port `Provider` on Vast.ai."""

from collections.abc import Iterable
from functools import cached_property
from typing import Unpack

from prime_train.providers.port import Account
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import Plane
from prime_train.providers.rental.provider import RentalProvider
from prime_train.providers.vast.account import WORDS, VastAccount, account_names
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.offers import PROVIDER
from prime_train.providers.vast.pods import VastPods
from prime_train.providers.vast.search import Searches
from prime_train.providers.vast.settings import VastSettings, read_settings


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

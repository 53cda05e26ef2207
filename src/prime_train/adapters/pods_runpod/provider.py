"""The port `Provider` on RunPod."""

from collections.abc import Iterable
from functools import cached_property
from typing import Unpack

from prime_train.adapters.pods_runpod.account import WORDS, RunPodAccount, account_names
from prime_train.adapters.pods_runpod.client import RunPodClient
from prime_train.adapters.pods_runpod.offers import PROVIDER
from prime_train.adapters.pods_runpod.pods import RunPodPods
from prime_train.adapters.pods_runpod.settings import RunPodSettings, read_settings
from prime_train.adapters.rental_api.pods import Plane
from prime_train.adapters.rental_api.provider import RentalProvider
from prime_train.ports import Account


class RunPodProvider(RentalProvider[RunPodPods]):
    """Machines of RunPod and its partners, with one balance."""

    name, words = PROVIDER, WORDS

    def account(self) -> Account:
        return RunPodAccount(self._client, self._pods.burn_usd_per_hour)

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> RunPodPods:
        return RunPodPods(
            self._client, self._context.install, public_key=public_key, clouds=self._settings.clouds, spot=self._settings.spot, **plane
        )

    def _account_names(self) -> Iterable[str]:
        return account_names(self._client)

    @cached_property
    def _settings(self) -> RunPodSettings:
        return read_settings(self._context.environment)

    @cached_property
    def _client(self) -> RunPodClient:
        return RunPodClient(self._settings, witness=self._context.witness)

"""The port `Provider` on Lambda Cloud. There is no account to watch: machines are billed afterwards."""

from collections.abc import Iterable
from functools import cached_property
from typing import Unpack

from prime_train.adapters.pods_lambda.account_names import WORDS, account_names
from prime_train.adapters.pods_lambda.client import LambdaClient
from prime_train.adapters.pods_lambda.offers import PROVIDER
from prime_train.adapters.pods_lambda.pods import LambdaPods
from prime_train.adapters.pods_lambda.settings import read_settings
from prime_train.adapters.pods_lambda.ssh_key import OwnSshKey
from prime_train.adapters.rental_api.pods import Plane
from prime_train.adapters.rental_api.provider import RentalProvider


class LambdaProvider(RentalProvider[LambdaPods]):
    """On-demand machines of Lambda Cloud."""

    name, words = PROVIDER, WORDS

    def account_name(self) -> str:
        """Return nothing: the API does not tell whose key it is, only whether its account has rented a machine from here."""
        return ""

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> LambdaPods:
        own_key = self._own_key if public_key else OwnSshKey(self._client, "")
        return LambdaPods(self._client, self._context.install, own_key=own_key, **plane)

    def _account_names(self) -> Iterable[str]:
        return account_names(self._own_key)

    @cached_property
    def _own_key(self) -> OwnSshKey:
        return OwnSshKey(self._client, self._context.public_key())

    @cached_property
    def _client(self) -> LambdaClient:
        return LambdaClient(read_settings(self._context.environment), witness=self._context.witness)

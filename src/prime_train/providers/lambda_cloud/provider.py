"""The port `Provider` on Lambda Cloud. There is no account to watch: machines are billed afterwards."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Unpack

from prime_train.errors import TemporaryError
from prime_train.providers.lambda_cloud.client import LambdaClient
from prime_train.providers.lambda_cloud.offers import PROVIDER
from prime_train.providers.lambda_cloud.pods import LambdaPods, OwnSshKey
from prime_train.providers.lambda_cloud.settings import KEY, TITLE, read_settings
from prime_train.providers.rental.account_check import AccountWords
from prime_train.providers.rental.pods import Plane
from prime_train.providers.rental.provider import RentalProvider

ACCOUNT = "PRIME_TRAIN_LAMBDA_ACCOUNT"
WORDS = AccountWords(TITLE, ACCOUNT)


def account_names(own: OwnSshKey) -> Iterator[str]:
    """Yield the name of the key's account. The API does not tell whose key it is. What is known to be in one
    account only is the entry of this control plane's SSH key, whose id Lambda Cloud chose: it is there once a
    machine was rented. Raises TemporaryError if the account has no entry of the SSH key, so that nothing is
    concluded from what it does not know: either nothing was ever rented, or it is another account."""
    found = own.find()
    if found is None:
        raise TemporaryError(
            f"the account at {TITLE} does not have this control plane's SSH key; check that {KEY} is of the "
            "same account"
        )
    yield f"ssh-key:{found.id}"


class LambdaProvider(RentalProvider[LambdaPods]):
    """On-demand machines of Lambda Cloud."""

    name, words = PROVIDER, WORDS

    def account_name(self) -> str:
        """Return nothing: the API does not tell whose key it is, only whether its account has rented a
        machine from here.
        """
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

"""The name of the account that a key for Lambda Cloud belongs to.

The API does not tell whose key it is. What is known to be in one account only is the entry of this control plane's SSH key, whose id
Lambda Cloud chose: it is there once a machine was rented.
"""

from collections.abc import Iterator

from prime_train.adapters.pods_lambda.settings import KEY, TITLE
from prime_train.adapters.pods_lambda.ssh_key import OwnSshKey
from prime_train.adapters.rental_api.account_check import AccountWords
from prime_train.ports import TemporaryError

ACCOUNT = "PRIME_TRAIN_LAMBDA_ACCOUNT"
WORDS = AccountWords(TITLE, ACCOUNT)


def account_names(own: OwnSshKey) -> Iterator[str]:
    """Yield the name. Raises TemporaryError if the account has no entry of the SSH key, so that nothing is concluded from what it does not
    know: either nothing was ever rented, or it is another account."""
    found = own.find()
    if found is None:
        raise TemporaryError(f"the account at {TITLE} does not have this control plane's SSH key; check that {KEY} is of the same account")
    yield f"ssh-key:{found.id}"

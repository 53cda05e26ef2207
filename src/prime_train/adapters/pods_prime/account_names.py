"""Names of the account that a key for Prime Intellect belongs to."""

import logging
from collections.abc import Iterator

from prime_train.adapters.pods_prime.client import TITLE, PrimeClient
from prime_train.adapters.rental_api.account_check import AccountWords
from prime_train.ports import PermanentError

ACCOUNT = "PRIME_TRAIN_PRIME_ACCOUNT"
WORDS = AccountWords(TITLE, ACCOUNT)
TEAM = "team:"

log = logging.getLogger(__name__)


def account_names(client: PrimeClient) -> Iterator[str]:
    """Yield the names: the team's, if one pays, and the person's, because older versions stored that one for teams, too. None if they
    cannot be queried."""
    for ask in (_team, _person) if client.team_id else (_person,):
        try:
            yield ask(client)
        except PermanentError as error:
            log.warning("the account of the key cannot be queried: %s", error)


def _team(client: PrimeClient) -> str:
    """Return the team's name. The wallet is read because only a member can read it; the configured id alone proves nothing."""
    client.wallet()
    return f"{TEAM}{client.team_id}"


def _person(client: PrimeClient) -> str:
    return client.whoami().id

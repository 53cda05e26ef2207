"""The port `Provider` on Prime Intellect."""

import logging
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Unpack

from prime_train.errors import PermanentError
from prime_train.providers.port import Account
from prime_train.providers.prime.account import PrimeAccount
from prime_train.providers.prime.client import TITLE, PrimeClient
from prime_train.providers.prime.offers import PROVIDER
from prime_train.providers.prime.pods import PrimePods
from prime_train.providers.prime.settings import read_settings
from prime_train.providers.rental.account_check import AccountWords
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import Plane
from prime_train.providers.rental.provider import RentalProvider

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

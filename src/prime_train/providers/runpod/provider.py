"""The ports `Provider` and `Account` on RunPod: the balance, what it pays for now, and the name of the
account.

At a balance of 0 RunPod stops every pod, and deletes those without a network volume, which all machines
rented here are.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Unpack

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.port import Account
from prime_train.providers.rental.account import Kept
from prime_train.providers.rental.account_check import AccountWords
from prime_train.providers.rental.pods import Plane
from prime_train.providers.rental.provider import RentalProvider
from prime_train.providers.runpod.client import RunPodClient
from prime_train.providers.runpod.offers import PROVIDER
from prime_train.providers.runpod.pods import RunPodPods
from prime_train.providers.runpod.settings import TITLE, RunPodSettings, read_settings
from prime_train.runs.funds import Bill, Funds

ACCOUNT = "PRIME_TRAIN_RUNPOD_ACCOUNT"
WORDS = AccountWords(TITLE, ACCOUNT)
FUNDS_S = 30.0

log = logging.getLogger(__name__)


class RunPodAccount:
    """The balance of one account, requested at most every `FUNDS_S` seconds. `burn` returns the hourly cost
    in USD of all pods. `clock` returns monotonic seconds.
    """

    provider = PROVIDER

    def __init__(
        self, client: RunPodClient, burn: Callable[[], float], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._myself, self._burn = Kept(client.myself, FUNDS_S, clock), burn

    def funds(self) -> Funds | None:
        """Return the balance. Raises PermanentError if the key may not ask for it. A failure is kept, and not
        retried before `FUNDS_S` have passed.
        """
        myself = self._myself()
        if myself.client_balance is None:
            raise TemporaryError(f"{TITLE} reports no balance")
        # What else the balance pays for, such as volumes, is not in the list of pods; pods that were just
        # rented are not in the sum yet.
        return Funds(PROVIDER, myself.client_balance, max(self._burn(), myself.current_spend_per_hr or 0.0))

    def bills(self) -> Sequence[Bill]:
        """Return none: RunPod bills pods by their ids and by the hour, without their names and ends. The
        ledger counts the pods' prices.
        """
        return []


def account_names(client: RunPodClient) -> Iterator[str]:
    """Yield the name of the account that the key belongs to; nothing if the key may not ask for it."""
    try:
        yield client.myself().id
    except PermanentError as error:
        log.warning("the account of the key cannot be queried: %s", error)


class RunPodProvider(RentalProvider[RunPodPods]):
    """Machines of RunPod and its partners, with one balance."""

    name, words = PROVIDER, WORDS

    def account(self) -> Account:
        return RunPodAccount(self._client, self._pods.burn_usd_per_hour)

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> RunPodPods:
        return RunPodPods(
            self._client,
            self._context.install,
            public_key=public_key,
            clouds=self._settings.clouds,
            spot=self._settings.spot,
            **plane,
        )

    def _account_names(self) -> Iterable[str]:
        return account_names(self._client)

    @cached_property
    def _settings(self) -> RunPodSettings:
        return read_settings(self._context.environment)

    @cached_property
    def _client(self) -> RunPodClient:
        return RunPodClient(self._settings, witness=self._context.witness)

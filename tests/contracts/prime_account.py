"""An account at a fake Prime Intellect, with a stock of machines of each offer set by the test."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from prime_train.providers.prime.client import PrimeClient
from prime_train.providers.prime.models import AvailableMachine
from prime_train.providers.prime.offers import named
from prime_train.providers.prime.pods import PrimePods
from prime_train.providers.prime.settings import PrimeSettings
from prime_train.spec.spec import HardwareSpec
from tests.contracts.rented_account import Started
from tests.fakes.prime import EXAMPLES, FakePrime, GpuRow, Plan


class Stocked(list[GpuRow]):
    """Rows with a limited stock of machines; read under the fake's lock."""

    def __init__(self, fake: FakePrime, stock: Mapping[str, int]) -> None:
        super().__init__(EXAMPLES)
        self._fake, self._stock = fake, stock

    def __iter__(self) -> Iterator[GpuRow]:
        taken = [pod.row.cloudId for pod in self._fake.alive]
        for row in super().__iter__():
            left = self._stock.get(row.cloudId, 1 + len(taken)) > taken.count(row.cloudId)
            yield row.model_copy(update={"stockStatus": "Available" if left else "Unavailable"})


class PrimeAccount:
    """An account. `started`: the tickets with which agents were started, by pod."""

    def __init__(self, home: Path) -> None:
        self.started = Started()
        self._fake = FakePrime(home, running=True, machines=False)
        self._fake.__enter__()

    def pods(self, stock: Mapping[str, int], boot_s: int) -> PrimePods:
        rows = [AvailableMachine.model_validate(row.model_dump()) for row in EXAMPLES]
        clouds = {offer_id: row.cloud_id for offer_id, row in named(rows, HardwareSpec()).items()}
        self._fake.world.rows = Stocked(
            self._fake, {clouds[offer_id]: count for offer_id, count in stock.items()}
        )
        self._fake.plan = Plan(provision_s=boot_s)
        return PrimePods(
            PrimeClient(PrimeSettings(self._fake.api_key, base_url=self._fake.url)), self.started
        )

    def close(self) -> None:
        self._fake.__exit__(None, None, None)
        assert self._fake.violations == []

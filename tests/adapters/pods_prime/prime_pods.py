"""What the tests of the provider Prime Intellect share."""

from typing import Any

from prime_train.adapters.pods_prime import PrimeClient, PrimePods, Settings
from prime_train.core.spec import HardwareSpec
from tests.adapters.rental_apis.shared import Pushed
from tests.fakes.prime import FakePrime

HARDWARE = HardwareSpec(gpus=("A100",), disk_gib=50)


class Pauses(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def client_of(fake: FakePrime, key: str = "", team_id: str = "") -> PrimeClient:
    return PrimeClient(Settings(key or fake.api_key, team_id, fake.url), pause_s=0.0)


def pods_of(fake: FakePrime, **options: Any) -> PrimePods:
    return PrimePods(client_of(fake), options.pop("pusher", Pushed()), **{"pause": Pauses()} | options)

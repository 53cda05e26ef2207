"""What the tests of the provider Prime Intellect share."""

from pathlib import Path
from typing import Any

from prime_train.providers.by_name import AccountOfOne
from prime_train.providers.prime.client import PrimeClient
from prime_train.providers.prime.pods import PrimePods
from prime_train.providers.prime.provider import WORDS, PrimeAccount, account_names
from prime_train.providers.prime.settings import PrimeSettings
from prime_train.providers.rental.account_check import InFile, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.spec.spec import HardwareSpec
from tests.adapters import rented_days
from tests.adapters.rental_apis.shared import Pushed
from tests.adapters.rented_days import Days, world_of
from tests.fakes import prime
from tests.fakes.prime import FakePrime

HARDWARE = HardwareSpec(gpus=("A100",), disk_gib=50)
MARK = PodMark("11111111")
PrimeDays = Days[FakePrime, prime.Pod]


class Pauses(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def client_of(fake: FakePrime, key: str = "", team_id: str = "", **timing: Any) -> PrimeClient:
    return PrimeClient(PrimeSettings(key or fake.api_key, team_id, fake.url), **{"pause_s": 0.0, **timing})


def pods_of(fake: FakePrime, **options: Any) -> PrimePods:
    return PrimePods(
        options.pop("client", None) or client_of(fake),
        options.pop("pusher", Pushed()),
        **{"pause": Pauses()} | options,
    )


def guarded(fake: FakePrime, folder: Path, **options: Any) -> PrimePods:
    """Return the pods of a new process, which compares the account with the one in the folder."""
    client = client_of(fake)
    return pods_of(
        fake,
        client=client,
        **{"owner": Owner(lambda: account_names(client), InFile(folder / "account"), WORDS), **options},
    )


def account_of(fake: FakePrime) -> PrimeAccount:
    return PrimeAccount(client_of(fake), MARK, lambda _: 0.0, clock=fake.now_s, wall=fake.now_s)


def days_of(fake: FakePrime, folder: Path, **timing: Any) -> PrimeDays:
    # The pause that a 429 asks for passes in the fake's time.
    client, pushed = client_of(fake, clock=fake.now_s, **timing), rented_days.Pushed(fake)
    pods = pods_of(fake, client=client, pusher=pushed, mark=MARK)
    account = AccountOfOne(
        PrimeAccount(client, MARK, pods.burn_usd_per_hour, clock=fake.now_s, wall=fake.now_s)
    )
    return Days(fake, "prime", world_of("prime", pods, folder, accounts=(account,)), pushed)

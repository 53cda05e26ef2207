"""An account at a fake Lambda Cloud, with a stock of machines of each offer set by the test."""

from collections.abc import Mapping

from prime_train.providers.lambda_cloud.client import LambdaClient
from prime_train.providers.lambda_cloud.pods import LambdaPods, OwnSshKey
from prime_train.providers.lambda_cloud.settings import LambdaSettings
from prime_train.providers.rental.rate_limit import RequestPace
from tests.contracts.rented_account import Started
from tests.fakes.lambda_cloud import API_KEY, FakeLambdaCloud

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx me@here"


class LambdaAccount:
    """An account, without the pace of the real one. `started`: the tickets with which agents were started, by
    pod.
    """

    def __init__(self) -> None:
        self.started = Started()
        self._fake = FakeLambdaCloud(running=True)
        self._fake.__enter__()

    def pods(self, stock: Mapping[str, int], boot_s: int) -> LambdaPods:
        self._fake.stock = {
            (kind, region): count
            for (kind, _, region), count in ((key.partition(":"), stock[key]) for key in stock)
        }
        self._fake.plan.boot_s = boot_s
        client = LambdaClient(LambdaSettings(API_KEY, self._fake.url), pace=RequestPace("Lambda Cloud", {}))
        return LambdaPods(client, self.started, own_key=OwnSshKey(client, PUBLIC_KEY))

    def close(self) -> None:
        self._fake.__exit__(None, None, None)
        assert self._fake.violations == []

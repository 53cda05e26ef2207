"""An account at a fake RunPod, with a stock of machines of each offer set by the test."""

from collections.abc import Mapping

from prime_train.providers.runpod.client import RunPodClient
from prime_train.providers.runpod.pods import RunPodPods
from prime_train.providers.runpod.settings import RunPodSettings
from tests.contracts.rented_account import Started
from tests.fakes.runpod import FakeRunPod


class RunPodAccount:
    """An account. `started`: the tickets with which agents were started, by pod."""

    def __init__(self) -> None:
        self.started = Started()
        self._fake = FakeRunPod(running=True)
        self._fake.terms.spend_limit_usd = 1000.0
        self._fake.balance_usd = 1000.0
        self._fake.__enter__()

    def pods(self, stock: Mapping[str, int], boot_s: int) -> RunPodPods:
        self._fake.stock = {self._place(offer_id): count for offer_id, count in stock.items()}
        self._fake.plan.boot_s = boot_s
        return RunPodPods(RunPodClient(RunPodSettings(self._fake.api_key, self._fake.url)), self.started)

    def close(self) -> None:
        self._fake.__exit__(None, None, None)
        assert self._fake.violations == []

    def _place(self, offer_id: str) -> tuple[str, str, str]:
        kind, _, place, cloud, _ = offer_id.split(":")
        known = next(each for each in self._fake.kinds if each.id.replace(" ", "-") == kind)
        return known.id, cloud.upper(), "" if place == "anywhere" else place

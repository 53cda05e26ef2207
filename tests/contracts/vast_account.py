"""An account at a fake Vast.ai, with a stock of machines of each offer set by the test."""

from collections.abc import Mapping

from prime_train.providers.rental.rate_limit import RequestPace
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.pods import VastPods
from prime_train.providers.vast.settings import VastSettings
from tests.contracts.rented_account import Started
from tests.fakes.vast import FakeVast

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx me@here"


class VastAccount:
    """An account, without the pace of the real one. `started`: the tickets with which agents were started, by
    pod.
    """

    def __init__(self) -> None:
        self.started = Started()
        self._fake = FakeVast(running=True)
        self._fake.__enter__()

    def pods(self, stock: Mapping[str, int], boot_s: int) -> VastPods:
        self._fake.stock = {self._ask(offer_id): count for offer_id, count in stock.items()}
        self._fake.plan.boot_s = boot_s
        client = VastClient(VastSettings(self._fake.api_key, self._fake.url), pace=RequestPace("Vast.ai", {}))
        return VastPods(client, self.started, public_key=PUBLIC_KEY)

    def close(self) -> None:
        self._fake.__exit__(None, None, None)
        assert self._fake.violations == []

    def _ask(self, offer_id: str) -> int:
        machine, count, *_ = offer_id.split(":")
        return int(machine.removeprefix("machine-")) * 100 + int(count.removesuffix("x"))

"""What the tests of the provider Vast.ai share."""

from collections.abc import Callable
from typing import Any

import pytest

from prime_train.adapters.pods_vast import Pace, Searches, Settings, VastClient, VastPods
from prime_train.core.offers import Offer, rank
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.core.wire import Ticket
from prime_train.ports import ExternalError, SshAddress
from tests.fakes.vast import FakeVast

NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("RTX4090",), count=2, disk_gib=50)
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx me@here"
SEARCH, LIST, CREATE = "/api/v0/bundles", "/api/v1/instances", "^/api/v0/asks/"
INSTANCE = "^/api/v0/instances/[0-9]+$"


class Pushed(list[tuple[SshAddress, Ticket]]):
    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        self.append((connection, ticket))


def client_of(fake: FakeVast, key: str = "", **options: Any) -> VastClient:
    options = {"pace": Pace({}), "pause_s": 0.0, **options}
    return VastClient(Settings(key or fake.api_key, fake.url), **options)


def pods_of(fake: FakeVast, **options: Any) -> VastPods:
    client = options.pop("client", None) or client_of(fake)
    searches = options.pop("searches", None) or Searches(client, clock=fake.now_s, wall=fake.now_s)
    return VastPods(client, options.pop("pusher", Pushed()), searches=searches, **options)


def first(pods: VastPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return rank(pods.offers(hardware), hardware).best[0]


def rent(pods: VastPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)


def raised(action: Callable[[], object]) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        action()
    return caught.value

"""What the tests of the provider RunPod share."""

from collections.abc import Callable
from typing import Any

import pytest

from prime_train.adapters.pods_runpod import RunPodClient, RunPodPods, Settings
from prime_train.core.offers import Offer, rank
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.core.wire import Ticket
from prime_train.ports import ExternalError, SshAddress
from tests.fakes.runpod import FakeRunPod

NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("H100",), count=2, disk_gib=50)
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx me@here"


class Pushed(list[tuple[SshAddress, Ticket]]):
    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        self.append((connection, ticket))


def client_of(fake: FakeRunPod, key: str = "", **options: Any) -> RunPodClient:
    return RunPodClient(Settings(key or fake.api_key, fake.url), pause_s=0.0, **options)


def pods_of(fake: FakeRunPod, **options: Any) -> RunPodPods:
    return RunPodPods(options.pop("client", None) or client_of(fake), options.pop("pusher", Pushed()), **options)


def first(pods: RunPodPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return rank(pods.offers(hardware), hardware).best[0]


def rent(pods: RunPodPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)


def raised(action: Callable[[], object]) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        action()
    return caught.value

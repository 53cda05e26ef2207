"""What the tests of the provider Lambda Cloud share."""

from collections.abc import Callable
from typing import Any

import pytest

from prime_train.adapters.pods_lambda import LambdaClient, LambdaPods, OwnSshKey, Pace, Settings
from prime_train.core.offers import Offer, rank
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.core.wire import Ticket
from prime_train.ports import ExternalError, SshAddress
from tests.fakes.lambda_cloud import API_KEY, FakeLambdaCloud

NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("H100",), count=8, disk_gib=50)
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx me@here"
TYPES, INSTANCES, KEYS = "/api/v1/instance-types", "/api/v1/instances", "/api/v1/ssh-keys"
LAUNCH, TERMINATE = "/api/v1/instance-operations/launch", "/api/v1/instance-operations/terminate"


class Pushed(list[tuple[SshAddress, Ticket]]):
    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        self.append((connection, ticket))


def client_of(fake: FakeLambdaCloud, key: str = API_KEY, **options: Any) -> LambdaClient:
    """Return a client without a pace, unless one is given."""
    return LambdaClient(Settings(key, fake.url), **{"pause_s": 0.0, "pace": Pace(0, 0), **options})


def pods_of(fake: FakeLambdaCloud, **options: Any) -> LambdaPods:
    client = options.pop("client", None) or client_of(fake)
    own_key = options.pop("own_key", None) or OwnSshKey(client, PUBLIC_KEY)
    return LambdaPods(client, options.pop("pusher", Pushed()), own_key=own_key, **options)


def first(pods: LambdaPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return rank(pods.offers(hardware), hardware).best[0]


def rent(pods: LambdaPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)


def raised(action: Callable[[], object]) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        action()
    return caught.value

"""What the tests of all rental APIs share."""

from collections.abc import Callable
from typing import Any

import pytest

from prime_train.errors import ExternalError
from prime_train.market.ranking import rank
from prime_train.providers.port import Pods, SshAddress
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

NAME = "pt-tiny-1-e1"
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx me@here"


class Pushed(list[tuple[SshAddress, Ticket]]):
    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        self.append((connection, ticket))


def first(pods: Pods, hardware: HardwareSpec) -> Offer:
    return rank(pods.offers(hardware), hardware).best[0]


def seen(pods: Pods, pod: Pod) -> PodStatus | None:
    found = pods.get(pod.pod_id)
    return found.status if found is not None else None


def raised(action: Callable[[], Any]) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        action()
    return caught.value

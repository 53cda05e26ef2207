"""Giving back what a drill has rented, from providers that are slow, wrong or down."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from prime_train.errors import TemporaryError
from prime_train.launch.provider_drill.machine import give_back, lose
from prime_train.launch.provider_drill.steps import Stopped
from prime_train.providers.memory import DEFAULT_OFFERS, MemoryPods
from prime_train.runs.run import Attempt
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec

SOON_S = 0.01
NAME = "pt-drill-abcde-e1-a0123456789abcdef"


class StubbornPods(MemoryPods):
    """Its first `refusals` requests to end a machine fail. `is_down`: no list can be read. `hides`: lists
    lack every machine.
    """

    refusals = 0
    is_down = False
    hides = False

    def terminate(self, pod_id: str) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise TemporaryError("the provider cannot end it now")
        super().terminate(pod_id)

    def list(self) -> Sequence[Pod]:
        if self.is_down:
            raise TemporaryError("the provider does not answer")
        return () if self.hides else super().list()


def rented(pods: MemoryPods) -> Pod:
    return pods.create(NAME, DEFAULT_OFFERS[0], HardwareSpec())


def silent(text: str) -> None:
    """Say nothing."""


def test_a_machine_that_is_not_ended_at_once_is_asked_for_again_until_it_is_gone() -> None:
    pods = StubbornPods()
    rented(pods)
    pods.refusals = 5
    found = give_back(pods, tuple, silent, look_s=SOON_S)
    assert (found.ended, found.left, found.unknown, list(pods.list())) == ((NAME,), (), "", [])


def test_a_machine_that_cannot_be_ended_is_named_with_the_reason() -> None:
    pods = StubbornPods()
    rented(pods)
    pods.refusals = 10**6
    (left,) = give_back(pods, tuple, silent, limit_s=0.2, look_s=SOON_S).left
    assert (left.name, left.usd_per_hour, left.why) == (NAME, 0.6, "the provider cannot end it now")


def test_a_provider_that_lists_nothing_leaves_unknown_whether_a_machine_is_left() -> None:
    pods = StubbornPods()
    pods.is_down = True
    assert (
        give_back(pods, tuple, silent, limit_s=0.2, look_s=SOON_S).unknown == "the provider does not answer"
    )


def test_a_machine_that_the_list_lacks_is_ended_by_its_id() -> None:
    pods = StubbornPods()
    pod = rented(pods)
    pods.hides = True
    attempt = Attempt(1, DEFAULT_OFFERS[0], launched_s=1, pod_id=pod.pod_id)
    assert give_back(pods, lambda: (attempt,), silent, look_s=SOON_S).ended == (NAME,)
    pods.hides = False
    assert list(pods.list()) == []


def test_a_create_call_without_an_answer_is_waited_for() -> None:
    pods = StubbornPods()
    attempt = Attempt(1, DEFAULT_OFFERS[0], launched_s=1)
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        if len(told) == 3:
            rented(pods)

    def attempts() -> Sequence[Attempt]:
        is_found = len(told) >= 3
        return (replace(attempt, ended_s=2 if is_found else None),)

    assert give_back(pods, attempts, tell, look_s=SOON_S).ended == (NAME,)
    assert "not answered" in told[0]


def test_how_the_end_of_a_machine_is_told_is_seen() -> None:
    pods = StubbornPods()
    pod = rented(pods)
    pods.refusals = 2
    loss = lose(pods, pod.pod_id, look_s=SOON_S)
    assert loss.told_s is not None
    assert loss.unlisted_s is not None
    assert "off the list" in loss.text


def test_a_machine_that_is_never_told_as_ended_stops_the_drill() -> None:
    pods = StubbornPods()
    pod = rented(pods)
    pods.refusals = 10**6
    with pytest.raises(Stopped, match="did not end the machine"):
        lose(pods, pod.pod_id, limit_s=0.2, look_s=SOON_S)

"""What a run does when this machine's pods fail it. The pods are real processes, and time is virtual."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from prime_train.errors import TemporaryError
from prime_train.providers.by_name import PodsByProvider
from prime_train.providers.local.pods import LocalPods
from prime_train.runs.offer import Offer
from prime_train.runs.run import RunState
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.adapters.strikes import Strike, strikes

AGENT = (sys.executable, "-c", "import signal; signal.pause()")
OFFERS = (Offer("local", "a100", 0.5, spot=True, gpu="A100", gpu_count=1, gpu_gb=80, disk_gib=1000),)


@dataclass(frozen=True)
class Running:
    """A pod, as `Days` needs it."""

    pod: Pod

    @property
    def id(self) -> str:
        return self.pod.pod_id

    def runs(self, now_s: float) -> bool:
        return self.pod.status is PodStatus.ACTIVE


class Watched(LocalPods):
    """Pods whose agents are noted, and of which `loses` create calls take effect without saying so."""

    pushed: Pushed
    loses = 0

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        created = super().create(name, offer, hardware)
        if self.loses:
            self.loses -= 1
            raise TemporaryError("the pod did not start in time")
        return created

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        super().put_agent(pod, ticket)
        self.pushed.add(pod.pod_id)


class Yard:
    """The folder of the pods, as a cloud."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._at_s = folder, time.time()

    def pods(self, *, boot_s: float = 0.0) -> Watched:
        return Watched(self._folder, offers=OFFERS, agent_command=AGENT, boot_s=boot_s)

    @property
    def alive(self) -> list[Running]:
        return [Running(pod) for pod in self.pods().list()]

    def now_s(self) -> float:
        return self._at_s

    def advance(self, seconds: float) -> None:
        self._at_s += seconds


YardDays = Days[Yard, Running]


def set_pods(days: YardDays, pods: Watched) -> None:
    pods.pushed = days.pushed
    days.world = replace(days.world, pods=PodsByProvider({"local": pods}, ("local",)))


@pytest.fixture(name="days")
def _days(tmp_path: Path) -> Iterator[YardDays]:
    yard = Yard(tmp_path / "pods")
    pods, pushed = yard.pods(), Pushed(yard)
    days = Days[Yard, Running](yard, "local", world_of("local", pods, tmp_path), pushed)
    set_pods(days, pods)
    yield days
    for machine in yard.alive:
        pods.terminate(machine.id)


@pytest.fixture(name="training")
def _training(days: YardDays) -> YardDays:
    days.pass_by(120)
    assert days.is_training_alone()
    return days


@strikes(Strike.SILENCE, "local")
def test_a_pod_whose_creation_was_not_confirmed_is_found_by_its_name(days: YardDays) -> None:
    pods = days.fake.pods()
    pods.loses = 1
    set_pods(days, pods)
    days.pass_by(600)
    assert pods.loses == 0
    assert days.is_training_alone()
    assert (days.run().attempt, days.most_alive) == (1, 1)


@strikes(Strike.TWICE, "local")
def test_of_two_pods_of_one_attempt_one_is_ended(training: YardDays) -> None:
    pod, run = training.pod.pod, training.run()
    training.fake.pods().create(pod.name, OFFERS[0], run.spec.hardware)
    assert len(training.fake.alive) == 2
    training.pass_by(600)
    assert training.is_training_alone()
    assert training.run().attempt == 1


def _without_notice(pods: LocalPods, pod_id: str) -> None:
    pods.preempt(pod_id)


def _with_notice(pods: LocalPods, pod_id: str) -> None:
    pods.preempt(pod_id, notice_s=1)


@strikes(Strike.TAKEN, "local")
@strikes(Strike.NOTICE, "local")
@pytest.mark.parametrize("take", [_without_notice, _with_notice])
def test_a_pod_that_is_taken_away_is_replaced_by_one(
    training: YardDays, take: Callable[[LocalPods, str], None]
) -> None:
    first = training.pod.id
    if take is _with_notice:
        training.notified.add(first)
        training.pass_by(60)
        assert training.run().state is RunState.DRAINING
    take(training.fake.pods(), first)
    training.pass_by(600)
    assert training.is_training_alone()
    assert (training.run().attempt, training.run().attempts[0].cause, training.most_alive) == (
        2,
        Cause.PREEMPTED,
        1,
    )


@strikes(Strike.STUCK, "local")
def test_a_pod_that_boots_for_ever_is_ended_and_another_is_made(days: YardDays) -> None:
    set_pods(days, days.fake.pods(boot_s=10**6))
    days.pass_by(60)
    set_pods(days, days.fake.pods())
    days.pass_by(3600)
    assert days.run().attempts[0].cause is Cause.BOOT_TIMEOUT
    assert days.is_training_alone()
    assert (days.run().attempt, days.most_alive) == (2, 1)

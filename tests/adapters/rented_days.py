"""Days of a run on machines of a provider's fake, in virtual time; its agents send heartbeats as long as
their machines run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from prime_train.buckets.folder import FolderBucket
from prime_train.providers.by_name import PodsByProvider, provider_of
from prime_train.providers.port import Account, Pods, SshAddress
from prime_train.runs.run import Change, DesiredState, Run, RunState
from prime_train.runs.wire import Phase, Ticket
from prime_train.stores.memory import MemoryStore
from prime_train.watch.context import Context
from prime_train.watch.sweeps import sweep
from tests import builders as b

HEARTBEAT_S = 30
STEP_S = 10


class Machine(Protocol):
    @property
    def id(self) -> str: ...

    def runs(self, now_s: float) -> bool: ...


M = TypeVar("M", bound=Machine)
M_co = TypeVar("M_co", bound=Machine, covariant=True)


class Cloud(Protocol[M_co]):
    """A fake of a provider. `alive`: the machines that cost money."""

    @property
    def alive(self) -> Sequence[M_co]: ...

    def now_s(self) -> float: ...

    def advance(self, seconds: float) -> None: ...


F = TypeVar("F", bound=Cloud[Any])


class Pushed(set[str]):
    """The machines that got an agent, all of which ran at that time."""

    def __init__(self, fake: Cloud[Any]) -> None:
        self._fake = fake

    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        assert connection.pod_id in {
            machine.id for machine in self._fake.alive if machine.runs(self._fake.now_s())
        }
        self.add(connection.pod_id)


@dataclass
class Days(Generic[F, M]):
    """A run and the fake of its provider. `most_alive`: the highest number of machines that cost money at the
    end of a sweep. `notified`: the machines whose agents were told that they will be taken away.
    """

    fake: F
    provider: str
    world: Context
    pushed: Pushed
    now_s: int = b.T0_S
    seq: int = 0
    most_alive: int = 0
    notified: set[str] = field(default_factory=set)

    def run(self) -> Run:
        record = self.world.store.load(b.RUN_ID)
        assert record is not None
        return record.run

    def pass_by(self, seconds: int) -> None:
        """Let time pass, with heartbeats, and sweeps when one is due."""
        for _ in range(seconds // HEARTBEAT_S):
            self.now_s += HEARTBEAT_S
            self.fake.advance(HEARTBEAT_S)
            self._heartbeat()
            if self.world.store.due(self.now_s, 1):
                sweep(self.world, self.now_s)
            self.most_alive = max(self.most_alive, len(self.fake.alive))

    def cancel(self) -> None:
        run = self.run()
        self.world.store.save(
            Change(
                replace(run, desired=DesiredState.CANCEL, version=run.version + 1, next_check_s=self.now_s)
            )
        )

    def is_training_alone(self) -> bool:
        """Return whether the run trains on the only machine that costs money."""
        attempt = self.run().current_attempt
        assert attempt is not None
        own = provider_of(attempt.pod_id or "")
        return self.run().state is RunState.TRAINING and [
            (self.provider, pod.id) for pod in self.fake.alive
        ] == [own]

    @property
    def pod(self) -> M:
        """Return the only machine that costs money."""
        alive: Sequence[M] = self.fake.alive
        (pod,) = alive
        return pod

    def _heartbeat(self) -> None:
        attempt = self.run().current_attempt
        if attempt is None or attempt.agent_put_s is None or attempt.fenced_s is not None:
            return
        pod_id = provider_of(attempt.pod_id or "")[1]
        if pod_id in {pod.id for pod in self.fake.alive if pod.runs(self.fake.now_s())} & self.pushed:
            self.seq += 1
            told = {
                "attempt": attempt.number,
                "identity": attempt.identity,
                "preempting": pod_id in self.notified,
            }
            step = 1 + (self.now_s - attempt.launched_s) // STEP_S
            self.world.store.heartbeat(
                b.heartbeat(self.seq, phase=Phase.TRAIN, step=step, **told), self.now_s
            )


def world_of(provider: str, pods: Pods, folder: Path, *, accounts: Sequence[Account] = ()) -> Context:
    """Return a control plane with this provider and a run that wants a cheap A100."""
    store = MemoryStore()
    spec = b.spec(
        hardware={"gpus": ["A100"], "provider": provider, "disk_gib": 50, "usd_per_hour_max": 2.0},
        budget={"usd": 500.0},
    )
    store.create(Run(b.RUN_ID, spec, created_s=b.T0_S))
    return Context(
        store,
        FolderBucket(folder / "bucket", make=True),
        PodsByProvider({provider: pods}, provider),
        master=b"master",
        webhook_url="http://127.0.0.1:1",
        providers={provider},
        accounts=tuple(accounts),
    )

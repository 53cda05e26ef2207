"""The provider in virtual time: it lags, fails, loses responses, preempts machines, and bills.

`machines` is the truth; the port's methods return what a control plane can observe. A machine may continue
after the provider has reported it as terminated (a zombie): it is billed no longer, but it still sends
heartbeats and uploads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prime_train.buckets.keys import parse_pod_name
from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from tests.simulation.faults import Faults, Luck, within
from tests.simulation.loop import Loop

OFFERS = (
    Offer("sim", "spot-a", 1.00, spot=True, disk_gib=100, region="a"),
    Offer("sim", "spot-b", 1.20, spot=True, disk_gib=100, region="b"),
    Offer("sim", "spot-c", 1.60, spot=True, disk_gib=100, region="c"),
    Offer("sim", "firm-a", 3.00, spot=False, disk_gib=100, region="a"),
    Offer("sim", "firm-b", 3.20, spot=False, disk_gib=100, region="b"),
)
USD_PER_HOUR_MAX = 3.20
END_S_MAX = 40
"""Seconds within which the provider ends a machine after it has accepted the request."""
BOOT_S = (10, 200)
CREATE_SLOW_S = (20, 300)
NOTICE_S = (20, 130)
ZOMBIE_S = (60, 7200)
CUT_S = (30, 1500)


class Tenant(Protocol):
    """A program that runs on a machine."""

    def notice(self) -> None: ...


@dataclass
class Machine:
    pod_id: str
    name: str
    run_id: str
    attempt: int
    offer: Offer
    created_s: float
    listed_s: float
    """The time from which the list contains the machine."""
    active_s: float
    puttable_s: float
    gone_s: float | None = None
    """The end of the machine at the provider, until which it is billed."""
    dead_listed_s: float = 0.0
    """The time until which the list still reports it as active although it is gone."""
    forgotten_s: float = 0.0
    """The time from which its id is unknown (404)."""
    dies_s: float | None = None
    """When the programs on it end; later than `gone_s` for a zombie."""
    frozen_s: float | None = None
    cut_until_s: float = 0.0
    requested_s: float | None = None
    """The time of the first terminate request that was accepted and will be carried out."""
    asks: int = 0
    """Number of terminate calls, accepted or not."""
    first_ask_s: float = 0.0
    reported: bool = False
    """Whether it was listed while it existed, or the ledger has it."""
    rebel: bool = False
    usd_per_hour: float = 0.0
    """The price that is billed; it may differ from the offer's."""
    unpaid_s: float = 0.0
    """Seconds between its creation and its end for which it was not billed."""
    tenant: Tenant | None = None
    seen: dict[PodStatus, Pod] = field(default_factory=dict, repr=False, compare=False)
    """The reported pods, by status."""

    @property
    def own_id(self) -> str:
        """The id that its provider gave it."""
        return self.pod_id.partition("/")[2] or self.pod_id

    def paid_s(self, now_s: float) -> float:
        """Return the seconds that are billed until `now_s`."""
        return (now_s if self.gone_s is None else self.gone_s) - self.created_s - self.unpaid_s

    def runs(self, now_s: float) -> bool:
        """Return whether the machine itself is up, whatever the provider reports."""
        return (self.dies_s is None or now_s < self.dies_s) and (
            self.frozen_s is None or now_s < self.frozen_s
        )


class VirtualPods:
    """The `Pods` port. `called(name)` is called before and after each effect; `disturbed` if a call
    failed.
    """

    def __init__(self, loop: Loop, luck: Luck, faults: Faults) -> None:
        self._loop, self._luck, self.faults = loop, luck, faults
        self.for_rent: Sequence[Offer] = OFFERS
        self._prefix = ""
        """What the ids begin with that the control plane knows."""
        self.machines: list[Machine] = []
        self.living: list[Machine] = []
        self.by_id: dict[str, Machine] = {}
        self.called: Callable[[str], None] = _nothing
        self.waits: Callable[[float], None] = _ignore
        self.disturbed: Callable[[float], None] = _ignore
        self.changed: Callable[[Machine], None] = _ignore
        self.created: Callable[[str], None] = _nothing
        self.terminating: Callable[[Machine], None] = _ignore
        self.started: Callable[[Machine, Ticket], None] = _ignore

    # --------------------------------------------------------------------------------------------------------
    # the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        self._call("offers")
        return () if self._full() and self._luck.rng.random() < 0.5 else self.for_rent

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        self._call("create")
        self.created(name)
        faults, luck = self.faults, self._luck
        if self._full():
            raise NoCapacity(f"no {offer.offer_id} is left")
        if luck.hit(faults.create_refused):
            raise PermanentError(f"{offer.offer_id} was refused")
        if luck.hit(faults.create_failed):
            raise self._trouble("create", "failed before it did anything")
        if luck.hit(faults.create_slow):
            self.waits(luck.rng.uniform(*CREATE_SLOW_S))
        machine = self._make(name, offer)
        if luck.hit(faults.create_lost):
            raise self._trouble("create", "the answer was lost")
        self.called("created")
        return self._seen(machine, PodStatus.PENDING)

    def list(self) -> Sequence[Pod]:
        self._call("list")
        now_s = self._loop.now_s
        seen: tuple[Pod, ...] = ()
        if self._luck.hit(self.faults.empty_list):
            self.disturbed(0)
        else:
            seen = tuple(
                pod for machine in self.machines if (pod := self._listed(machine, now_s)) is not None
            )
            seen = self._cut(seen) if self._luck.hit(self.faults.cut_list) else seen
        for pod in seen:  # nobody can know of a machine from a list that was cut short before it
            machine = self.by_id[pod.pod_id]
            if not machine.reported and machine.gone_s is None:
                machine.reported = True
                self.changed(machine)
        self.called("listed")
        return seen

    def get(self, pod_id: str) -> Pod | None:
        self._call("get")
        return self._got(pod_id)

    def _got(self, pod_id: str) -> Pod | None:
        machine, now_s = self.by_id.get(pod_id), self._loop.now_s
        if machine is None or (machine.gone_s is not None and now_s >= machine.forgotten_s):
            return None
        return self._seen(machine, self._status(machine))

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        self._call("put_agent")
        machine, now_s = self.by_id[pod.pod_id], self._loop.now_s
        if machine.gone_s is not None or now_s < machine.puttable_s or not machine.runs(now_s):
            raise TemporaryError("the machine cannot be reached")
        if machine.tenant is None:
            self.started(machine, ticket)
        self.called("put")

    def terminate(self, pod_id: str) -> None:
        self._call("terminate")
        machine = self.by_id[pod_id]
        self.terminating(machine)
        if machine.gone_s is None and machine.requested_s is None:
            if self._luck.hit(self.faults.terminate_ignored):
                self.disturbed(0)
            else:
                machine.requested_s = self._loop.now_s
                self._loop.after(self._luck.rng.uniform(0, END_S_MAX), lambda: self.end(machine))
                self.changed(machine)
        self.called("terminated")

    # --------------------------------------------------------------------------------------------------------
    # the truth

    def down(self, now_s: float) -> bool:
        return within(self.faults.provider_down, now_s)

    def end(self, machine: Machine) -> None:
        """End the machine at the provider; its programs may continue for a while."""
        if machine.gone_s is not None:
            return
        now_s, faults, luck = self._loop.now_s, self.faults, self._luck
        machine.gone_s = now_s
        lag_s = luck.rng.uniform(0, faults.list_dead_s_max) if luck.hit(0.5) else 0.0
        machine.dead_listed_s = now_s + lag_s
        machine.forgotten_s = machine.dead_listed_s + luck.rng.uniform(0, 300)
        machine.dies_s = now_s
        if luck.hit(faults.zombie):
            machine.dies_s = now_s + luck.rng.uniform(*ZOMBIE_S)
            machine.rebel = luck.hit(faults.rebel)
        self.living.remove(machine)
        self.changed(machine)

    def _make(self, name: str, offer: Offer) -> Machine:
        named = parse_pod_name(name)
        assert named is not None
        now_s, faults, luck = self._loop.now_s, self.faults, self._luck
        boot_s = luck.rng.uniform(*BOOT_S)
        lag_s = luck.rng.uniform(0, faults.list_new_s_max) if luck.hit(0.7) else 0.0
        times_s = (now_s, now_s + lag_s, now_s + boot_s, now_s + boot_s)
        machine = Machine(
            self._prefix + self._new_id(name), name, *named, offer, *times_s, usd_per_hour=offer.usd_per_hour
        )
        if luck.hit(faults.boot_never):
            forever_s = now_s + 10**6
            machine.puttable_s = forever_s
            machine.active_s = forever_s if luck.rng.random() < 0.5 else machine.active_s
        elif luck.hit(faults.put_fails):
            machine.puttable_s += luck.rng.uniform(60, 900)
        self.machines.append(machine)
        self.living.append(machine)
        self.by_id[machine.own_id] = machine
        self._doom(machine)
        self._loop.at(machine.listed_s, lambda: self.changed(machine))
        self.changed(machine)
        return machine

    def _new_id(self, name: str) -> str:
        """Return the id of the next machine."""
        return f"m{len(self.machines) + 1}"

    def _doom(self, machine: Machine) -> None:
        """Draw the later faults of the machine itself."""
        faults, luck = self.faults, self._luck
        if machine.offer.spot and (taken_s := luck.falls_s(faults.preempt_each_s)) is not None:
            self._loop.at(taken_s, lambda: self._take_away(machine))
        machine.frozen_s = luck.falls_s(faults.hang_each_s)
        cut_s = luck.falls_s(faults.cut_each_s)
        if cut_s is not None:
            until_s = cut_s + luck.rng.uniform(*CUT_S)
            self._loop.at(cut_s, lambda: setattr(machine, "cut_until_s", until_s))

    def _take_away(self, machine: Machine) -> None:
        if machine.gone_s is not None:
            return
        if machine.tenant is not None and self._luck.rng.random() < self.faults.notice:
            machine.tenant.notice()
            self._loop.after(self._luck.rng.uniform(*NOTICE_S), lambda: self.end(machine))
        else:
            self.end(machine)

    def _listed(self, machine: Machine, now_s: float) -> Pod | None:
        if now_s < machine.listed_s:
            return None
        if machine.gone_s is not None and now_s >= machine.forgotten_s:
            return None
        stale = machine.gone_s is not None and now_s < machine.dead_listed_s
        return self._seen(machine, PodStatus.ACTIVE if stale else self._status(machine))

    def _cut(self, seen: tuple[Pod, ...]) -> tuple[Pod, ...]:
        if self._luck.rng.random() < 0.5:
            raise self._trouble("list", "fewer machines than there are said to be")
        self.disturbed(0)
        return seen[: self._luck.rng.randint(0, len(seen))]

    def _status(self, machine: Machine) -> PodStatus:
        if machine.gone_s is not None:
            return PodStatus.GONE
        return PodStatus.ACTIVE if self._loop.now_s >= machine.active_s else PodStatus.PENDING

    def _seen(self, machine: Machine, status: PodStatus) -> Pod:
        if status is not PodStatus.GONE and self._luck.hit(self.faults.unusual):
            status = PodStatus.UNKNOWN
        pod = machine.seen.get(status)
        if pod is None:
            pod = machine.seen[status] = Pod(
                machine.own_id, machine.name, status, int(machine.created_s), machine.usd_per_hour
            )
        return pod

    def _full(self) -> bool:
        return within(self.faults.no_capacity, self._loop.now_s)

    def _call(self, what: str) -> None:
        self.called(what)
        if self.down(self._loop.now_s) or self._luck.hit(self.faults.provider_error):
            raise self._trouble(what, "the provider does not answer")

    def _trouble(self, what: str, why: str) -> TemporaryError:
        self.disturbed(0)
        return TemporaryError(f"{what}: {why}")


def _nothing(what: str) -> None:
    return None


def _ignore(*what: object) -> None:
    return None

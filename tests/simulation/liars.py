"""Several providers in virtual time that lie, each in its own way, joined by the product's `PodsByProvider`.

Each provider has a few of the `KINDS` of lies. The truth is in its `machines`; what is reported may be wrong
for minutes, or an hour.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from prime_train.errors import ExternalError, NoCapacity, NoFunds, PermanentError, TemporaryError
from prime_train.providers.by_name import PodsByProvider
from prime_train.runs.funds import Bill, Funds
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from tests.simulation.faults import Faults, Luck, Window, Windows, windows, within
from tests.simulation.loop import Loop
from tests.simulation.provider import OFFERS, Machine, VirtualPods

NAMES = ("alder", "birch", "cedar", "doum")
ASLEEP_S = (120, 9000)
"""Range of the seconds after which a stopped machine wakes up."""
DENIED_S = (5, 60)
HIDDEN_S = (30, 3600)
UNKNOWN_S = 3600
DEAR = (0.7, 3.0)
"""Range of the factor by which the price changes at the create call."""
WALLET_USD = 1000.0


@dataclass(frozen=True)
class Lies:
    """What a provider lies about. Shares are probabilities per call or machine; windows are virtual
    seconds.
    """

    twice: float = 0.0
    """Share of create calls that rent two machines of one name."""
    leftover: float = 0.0
    """Share of create calls that are refused and leave a stopped machine."""
    reborn: float = 0.0
    """Share of preempted machines that are only stopped, and wake up later."""
    unknown: Windows = ()
    """When the state of no living machine is known."""
    hidden: float = 0.0
    """Share of machines that are missing in the list for a while, although they live and can be queried."""
    cached: float = 0.0
    """Share of lists that are an earlier one, up to `cached_s_max` old."""
    cached_s_max: float = 0.0
    denied: float = 0.0
    """Share of machines whose id is reported as unknown (404) for up to a minute, although they live."""
    dear: float = 0.0
    """Share of create calls that change the price."""
    broke: Windows = ()
    """When the wallet is empty: all machines end, and none can be rented."""
    claims_empty: Windows = ()
    """When the wallet is reported as empty, although it is not."""
    names_as_ids: bool = False
    """Whether a machine's id repeats its name; otherwise ids are numbers that other providers give as
    well.
    """


class LyingPods(VirtualPods):
    """One provider. `asleep` are stopped machines, which may wake up; they are reported as the provider sees
    fit.
    """

    def __init__(
        self, loop: Loop, luck: Luck, faults: Faults, name: str, lies: Lies, for_rent: Sequence[Offer]
    ) -> None:
        super().__init__(loop, luck, faults)
        self.name, self.lies = name, lies
        self.for_rent, self._prefix = for_rent, f"{name}/"
        self.asleep: dict[str, PodStatus | None] = {}
        """By id, how the machine is reported; None: not at all."""
        self.hidden: dict[str, Window] = {}
        self.by_known_id: dict[str, Machine] = {}
        """All machines of the market, by the ids that the control plane knows."""
        self._denied: dict[str, Window] = {}
        self._tickets: dict[str, Ticket] = {}
        self._listed_before: tuple[float, Sequence[Pod]] | None = None
        self._answer: Sequence[Offer] | ExternalError = ()
        self._listing: Sequence[Pod] | ExternalError = ()
        for window in lies.broke:
            loop.at(window.start_s, self._run_dry)

    # --------------------------------------------------------------------------------------------------------
    # the port

    def prepare_offers(self, hardware: HardwareSpec) -> None:
        """Draw the answer of the next `offers`, which is called in a thread, where nothing may be drawn."""
        try:
            self._answer = super().offers(hardware)
        except ExternalError as error:
            self._answer = error

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        if isinstance(self._answer, ExternalError):
            raise self._answer
        return self._answer

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        luck = self._luck
        if within(self.lies.broke, self._loop.now_s):
            self._call("create")
            self.created(name)
            raise NoFunds(f"{self.name} has no credit")
        if luck.hit(self.lies.leftover):
            self._call("create")
            self.created(name)
            self._leave_stopped(name, offer)
            raise luck.rng.choice((NoCapacity, PermanentError))(f"{offer.offer_id} was refused")
        before = len(self.machines)
        try:
            return super().create(name, offer, hardware)
        finally:
            if len(self.machines) > before and luck.hit(self.lies.twice):
                self._make(name, offer)

    def prepare_list(self) -> None:
        """Draw the answer of the next `list`, which is called in a thread, too."""
        try:
            self._listing = self._cached_or_new_list()
        except ExternalError as error:
            self._listing = error

    def list(self) -> Sequence[Pod]:
        if isinstance(self._listing, ExternalError):
            raise self._listing
        return self._listing

    @property
    def was_listed(self) -> bool:
        """Whether the last list was answered."""
        return not isinstance(self._listing, ExternalError)

    def _cached_or_new_list(self) -> Sequence[Pod]:
        before = self._listed_before
        if (
            before is not None
            and self._loop.now_s - before[0] <= self.lies.cached_s_max
            and self._luck.hit(self.lies.cached)
        ):
            self._call("list")
            self.disturbed(0)
            self.called("listed")
            return before[1]
        listed = super().list()
        self._listed_before = self._loop.now_s, listed
        return listed

    def _got(self, pod_id: str) -> Pod | None:
        if self._is_denied(pod_id):
            self.disturbed(0)
            return None
        if pod_id in self.asleep:
            status = self.asleep[pod_id]
            return self._seen(self.by_id[pod_id], status) if status is not None else None
        return super()._got(pod_id)

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        super().put_agent(pod, ticket)
        self._tickets[pod.pod_id] = ticket

    def terminate(self, pod_id: str) -> None:
        machine = self.by_id[pod_id]
        if pod_id not in self.asleep and not self._is_denied(pod_id):
            super().terminate(pod_id)
            return
        self._call("terminate")
        self.terminating(machine)
        if self._is_denied(pod_id) or self._luck.hit(self.faults.terminate_ignored):
            self.disturbed(0)  # an unknown id counts as gone
        elif pod_id in self.asleep:
            del self.asleep[pod_id]
            machine.requested_s = self._loop.now_s
            self.changed(machine)
        else:
            self.disturbed(0)  # it has woken up meanwhile
        self.called("terminated")

    # --------------------------------------------------------------------------------------------------------
    # the truth

    def is_hidden(self, machine: Machine) -> bool:
        """Return whether the list lacks the machine now."""
        window = self.hidden.get(machine.own_id)
        return window is not None and window.has(self._loop.now_s)

    def is_denied_lately(self, machine: Machine, seconds: float) -> bool:
        """Return whether the machine was reported as gone within these seconds, although it lived, or was
        stopped.
        """
        window, now_s = self._denied.get(machine.own_id), self._loop.now_s
        return machine.own_id in self.asleep or (
            window is not None and window.start_s <= now_s < window.end_s + seconds
        )

    def is_disowned(self, machine: Machine) -> bool:
        """Return whether the machine's id was ever reported as unknown: then only a list could show that it
        is still paid for.
        """
        return machine.own_id in self._denied

    def is_sold_out(self, now_s: float) -> bool:
        """Return whether no machine can be rented now."""
        return (
            within(self.lies.broke, now_s)
            or within(self.lies.claims_empty, now_s)
            or within(self.faults.no_capacity, now_s)
        )

    def burn_usd_per_hour(self) -> float:
        return sum(machine.usd_per_hour for machine in self.living)

    def _make(self, name: str, offer: Offer) -> Machine:
        machine, luck, now_s = super()._make(name, offer), self._luck, self._loop.now_s
        self.by_known_id[machine.pod_id] = machine
        if luck.hit(self.lies.dear):
            machine.usd_per_hour *= luck.rng.uniform(*DEAR)
        if luck.hit(self.lies.hidden):
            start_s = now_s + luck.rng.choice((0.0, luck.rng.uniform(0, 2000)))
            self.hidden[machine.own_id] = self._window(start_s, HIDDEN_S)
            for edge_s in (start_s, self.hidden[machine.own_id].end_s):
                self._loop.at(edge_s, lambda: self.changed(machine))
        if luck.hit(self.lies.denied):
            self._denied[machine.own_id] = self._window(
                now_s + luck.rng.choice((0.0, luck.rng.uniform(0, 1500))), DENIED_S
            )
        self.changed(machine)
        return machine

    def _window(self, start_s: float, length_s: tuple[float, float]) -> Window:
        return Window(
            start_s, min(start_s + self._luck.rng.uniform(*length_s), max(start_s, self._luck.quiet_s))
        )

    def _new_id(self, name: str) -> str:
        twins = sum(machine.name == name for machine in self.machines)
        return (f"{name}.{twins}" if twins else name) if self.lies.names_as_ids else super()._new_id(name)

    def _is_denied(self, pod_id: str) -> bool:
        window = self._denied.get(pod_id)
        return window is not None and window.has(self._loop.now_s)

    def _leave_stopped(self, name: str, offer: Offer) -> None:
        machine, rng = self._make(name, offer), self._luck.rng
        self._stop(machine, rng.choice((PodStatus.UNKNOWN, PodStatus.BROKEN)), wakes=rng.random() < 0.5)

    def _take_away(self, machine: Machine) -> None:
        if machine.gone_s is not None:
            return
        if machine.requested_s is None and self._luck.hit(self.lies.reborn):
            self._stop(
                machine,
                self._luck.rng.choice((PodStatus.GONE, PodStatus.GONE, PodStatus.UNKNOWN, None)),
                wakes=True,
            )
        else:
            super()._take_away(machine)

    def _stop(self, machine: Machine, reported: PodStatus | None, *, wakes: bool) -> None:
        now_s = self._loop.now_s
        machine.gone_s = machine.dies_s = now_s
        machine.dead_listed_s, machine.forgotten_s = 0.0, now_s + 300
        self.asleep[machine.own_id] = reported
        self.living.remove(machine)
        self.changed(machine)
        if wakes:
            self._loop.after(self._luck.rng.uniform(*ASLEEP_S), lambda: self._wake(machine))

    def _wake(self, machine: Machine) -> None:
        """Start the stopped machine again, with whatever ran on it."""
        now_s = self._loop.now_s
        if machine.own_id not in self.asleep or machine.gone_s is None:
            return
        del self.asleep[machine.own_id]
        machine.unpaid_s += now_s - machine.gone_s
        machine.gone_s = machine.dies_s = machine.requested_s = machine.frozen_s = None
        machine.listed_s = machine.active_s = machine.puttable_s = now_s
        self.living.append(machine)
        self.changed(machine)
        ticket = self._tickets.get(machine.own_id)
        if ticket is not None:
            self.started(machine, ticket)

    def _run_dry(self) -> None:
        for machine in [*self.living]:
            self.end(machine)

    def _listed(self, machine: Machine, now_s: float) -> Pod | None:
        if self.is_hidden(machine):
            return None
        if machine.own_id in self.asleep:
            status = self.asleep[machine.own_id]
            return self._seen(machine, status) if status is not None else None
        return super()._listed(machine, now_s)

    def _seen(self, machine: Machine, status: PodStatus) -> Pod:
        is_unknown = status in (PodStatus.ACTIVE, PodStatus.PENDING) and within(
            self.lies.unknown, self._loop.now_s
        )
        return super()._seen(machine, PodStatus.UNKNOWN if is_unknown else status)


class Wallet:
    """The `Account` port: a prepaid wallet that runs empty when the provider's `broke` windows begin."""

    def __init__(self, pods: LyingPods, loop: Loop) -> None:
        self._pods, self._loop = pods, loop

    @property
    def provider(self) -> str:
        return self._pods.name

    def funds(self) -> Funds | None:
        lies, now_s, burn = self._pods.lies, self._loop.now_s, self._pods.burn_usd_per_hour()
        if self._pods.down(now_s):
            raise TemporaryError("the balance cannot be read")
        if within(lies.broke, now_s) or within(lies.claims_empty, now_s):
            return Funds(self.provider, 0.0, burn)
        ahead_s = min(
            (window.start_s - now_s for window in lies.broke if window.start_s > now_s),
            default=WALLET_USD * 3600,
        )
        return Funds(self.provider, max(burn, 1.0) * ahead_s / 3600, burn)

    def bills(self) -> Sequence[Bill]:
        return ()


class Market:
    """The `Pods` port over all providers, and the truth about their machines by the ids that the control
    plane knows.
    """

    def __init__(self, providers: Mapping[str, LyingPods]) -> None:
        self.providers = dict(providers)
        self._port = PodsByProvider(self.providers, tuple(self.providers))
        self.by_id: dict[str, Machine] = {}
        for pods in self.providers.values():
            pods.by_known_id = self.by_id
        self.called: Callable[[str], None] = lambda _: None
        self.listed: Callable[[frozenset[str]], None] = lambda _: None
        """Called after a list, with the providers that could not be read."""

    @property
    def living(self) -> list[Machine]:
        return [machine for pods in self.providers.values() for machine in pods.living]

    @property
    def for_rent(self) -> list[Offer]:
        return [offer for pods in self.providers.values() for offer in pods.for_rent]

    @property
    def asleep(self) -> list[str]:
        """The stopped machines that exist."""
        return [f"{name}/{own_id}" for name, pods in self.providers.items() for own_id in pods.asleep]

    def of(self, machine: Machine) -> LyingPods:
        """Return the provider of the machine."""
        return self.providers[machine.offer.provider]

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        for pods in self.providers.values():
            pods.prepare_offers(hardware)
        return self._port.offers(hardware)

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        return self._port.create(name, offer, hardware)

    def list(self) -> Sequence[Pod]:
        self.called("list")
        for pods in self.providers.values():
            pods.prepare_list()
        try:
            return self._port.list()
        finally:
            self.listed(frozenset(name for name, pods in self.providers.items() if not pods.was_listed))

    def get(self, pod_id: str) -> Pod | None:
        return self._port.get(pod_id)

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        self._port.put_agent(pod, ticket)

    def terminate(self, pod_id: str) -> None:
        self._port.terminate(pod_id)


# ------------------------------------------------------------------------------------------------------------
# the draw

Drawn = tuple[dict[str, float | Windows], dict[str, float | Windows]]
"""Fields of `Faults` and of `Lies`."""


def _windows(rng: random.Random, quiet_s: float, low_s: float, high_s: float, most: int = 2) -> Windows:
    drawn = windows(rng, quiet_s, rng.randint(1, most), low_s, high_s)
    return tuple(replace(window, end_s=min(quiet_s, window.end_s)) for window in drawn)


KINDS: Mapping[str, Callable[[random.Random, float], Drawn]] = {
    "answers a create call with silence": lambda r, _: (
        {"create_lost": r.uniform(0.3, 0.8), "create_slow": r.uniform(0, 0.5)},
        {},
    ),
    "rents two machines for one call": lambda r, _: (
        {"create_lost": r.uniform(0, 0.4)},
        {"twice": r.uniform(0.3, 0.9)},
    ),
    "leaves a stopped machine behind a refusal": lambda r, _: ({}, {"leftover": r.uniform(0.2, 0.6)}),
    "wakes stopped machines": lambda r, _: (
        {"preempt_each_s": r.uniform(300, 1500)},
        {"reborn": r.uniform(0.5, 1.0)},
    ),
    "knows no state for an hour": lambda r, q: (
        {"unusual": r.uniform(0, 0.2)},
        {"unknown": _windows(r, q, UNKNOWN_S, UNKNOWN_S)},
    ),
    "lists not all that live": lambda r, _: ({}, {"hidden": r.uniform(0.3, 1.0)}),
    "cuts its list short": lambda r, _: (
        {"cut_list": r.uniform(0.1, 0.5), "empty_list": r.uniform(0, 0.2)},
        {},
    ),
    "lists what was": lambda r, _: (
        {"list_new_s_max": r.uniform(5, 400), "list_dead_s_max": r.uniform(5, 900)},
        {"cached": r.uniform(0.3, 0.9), "cached_s_max": r.uniform(60, 600)},
    ),
    "refuses calls": lambda r, q: (
        {"provider_error": r.uniform(0.1, 0.5), "provider_down": _windows(r, q, 60, 3600)},
        {},
    ),
    "runs out of credit": lambda r, q: (
        {},
        {"broke": _windows(r, q, 60, 2400), "claims_empty": _windows(r, q, 15, 600)},
    ),
    "never boots": lambda r, _: ({"boot_never": r.uniform(0.3, 0.9), "put_fails": r.uniform(0, 0.5)}, {}),
    "denies what lives": lambda r, _: ({}, {"denied": r.uniform(0.3, 1.0)}),
    "changes the price": lambda r, _: ({}, {"dear": r.uniform(0.3, 0.9)}),
    "has no stock": lambda r, q: (
        {"no_capacity": _windows(r, q, 600, 3600), "create_refused": r.uniform(0, 0.4)},
        {},
    ),
    "ignores terminate calls": lambda r, _: (
        {"terminate_ignored": r.uniform(0.1, 0.6), "zombie": r.uniform(0.1, 0.6)},
        {},
    ),
}
KINDS_A_PROVIDER_MAX = 3
HONEST = 0.15
"""Share of the providers that do not lie."""
PROVIDER_FAULTS = (
    *(
        "provider_error",
        "provider_down",
        "empty_list",
        "list_new_s_max",
        "list_dead_s_max",
        "unusual",
        "create_lost",
        "create_failed",
    ),
    *(
        "create_slow",
        "create_refused",
        "no_capacity",
        "boot_never",
        "put_fails",
        "terminate_ignored",
        "zombie",
        "cut_list",
    ),
)
NONE = Faults(quiet_s=0.0)


def without_provider(faults: Faults) -> Faults:
    """Return the faults of everything but providers."""
    return replace(faults, **{name: getattr(NONE, name) for name in PROVIDER_FAULTS})


def draw_market(rng: random.Random, loop: Loop, luck: Luck, faults: Faults) -> dict[str, LyingPods]:
    """Draw the providers of a seed; `faults` are those of everything else."""
    market = {
        name: _draw_provider(rng, loop, luck, faults, name) for name in NAMES[: rng.randint(2, len(NAMES))]
    }
    if {offer.spot for pods in market.values() for offer in pods.for_rent} != {True, False}:
        market[NAMES[0]].for_rent = tuple(replace(offer, provider=NAMES[0]) for offer in OFFERS)
    return market


def _draw_provider(rng: random.Random, loop: Loop, luck: Luck, faults: Faults, name: str) -> LyingPods:
    honest = rng.random() < HONEST
    kinds = [] if honest else rng.sample(list(KINDS), rng.randint(1, KINDS_A_PROVIDER_MAX))
    fails: dict[str, float | Windows] = {}
    lies: dict[str, float | Windows] = {}
    for kind in kinds:
        more_fails, more_lies = KINDS[kind](rng, faults.quiet_s)
        fails |= more_fails
        lies |= more_lies
    for_rent = tuple(
        replace(offer, provider=name, usd_per_hour=round(offer.usd_per_hour * rng.uniform(0.7, 1.4), 2))
        for offer in sorted(rng.sample(OFFERS, rng.randint(2, len(OFFERS))), key=lambda offer: offer.offer_id)
    )
    own_faults: Faults = replace(faults, **fails)  # type: ignore[arg-type]
    own_lies = Lies(**lies, names_as_ids=rng.random() < 0.3)  # type: ignore[arg-type]
    return LyingPods(loop, luck, own_faults, name, own_lies, for_rent)

"""The simulation with several providers that lie, each in its own way.

All other faults continue. What must hold whatever the providers say: no machine is left behind or paid for
beyond its bound after its attempt was fenced (counted in the seconds in which *its* provider worked: the
failure of one must not delay another's), no two attempts train with a valid lease, no durable step is lost,
no run waits for a provider that fails while another works, and the budget is kept. Promises about machines
that a provider itself disowns are left out.
"""

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar
from unittest.mock import patch

from prime_train.buckets.keys import pod_name
from prime_train.errors import ExternalError
from prime_train.providers import by_name as pods_by_provider
from prime_train.runs import ledger
from prime_train.runs.offer import fits
from prime_train.runs.run import Attempt, DesiredState, Run, RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Ticket
from prime_train.watch.context import Context
from tests.simulation.agent import Work
from tests.simulation.clocks import Host
from tests.simulation.faults import Faults, edges
from tests.simulation.liars import Market, Wallet, draw_market, without_provider
from tests.simulation.promises import (
    DISTURBED_S,
    LOSSES,
    OLD_POD_GONE_S,
    SKEW_S,
    STEP_S_MAX,
    SWEEP_S,
    Broken,
    Keeper,
    Sweeping,
    Truth,
)
from tests.simulation.provider import OFFERS, Machine
from tests.simulation.world import Simulation

T = TypeVar("T")

CALM = 0.4
"""Share of the seeds in which only machines, trainers and providers fail."""
LIMITED = 0.3
"""Share of the runs with a highest price."""
LIMIT = (1.02, 2.0)
"""Range of that price, by the lowest one of an offer that fits."""
HELD_UP_S = SWEEP_S + 30
"""Seconds in which a provider works, within which a run that waits for a machine asks for one."""
SETTLES_S = 120
"""Seconds after a false report that a machine is gone for which its attempt may be replaced because of it."""
LEFT_OUT = frozenset(
    {
        "a machine that is gone is seen to be gone",
        "the ledger ends with the pod",
    }
)


class MarketKeeper(Keeper):
    """Checks what providers cannot change by lying."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        assert isinstance(self._pods, Market)
        self._market = self._pods
        self._able_of = dict.fromkeys(self._market.providers, 0.0)
        """Seconds in which a watcher was up and this provider worked."""
        self._disturbed_own_s = 0.0
        self._troubled_s = dict.fromkeys(self._market.providers, 0.0)
        self.created_runs: set[str] = set()
        self._waits: dict[str, dict[str, float]] = {}
        """The able second of each provider from which on a run without a machine could have rented one
        there.
        """
        self._left: dict[str, float] = {}
        """The able second of its provider from which on a machine should not be there any more."""

    def each(self) -> None:
        before_s = self._checked_s
        super().each()
        now_s = self._loop.now_s
        for name, able_s in self._able_of.items():
            start_s = max(before_s, self._disturbed_own_s, self._troubled_s[name])
            self._able_of[name] = able_s + max(0.0, now_s - start_s)
        if not self._faults.bucket_error and not self._faults.bucket_down:
            self._held_up(now_s)
        for pod_id, since_s in self._left.items():
            machine = self._market.by_id[pod_id]
            if self._able_of[machine.offer.provider] - since_s > OLD_POD_GONE_S:
                found = (
                    f"{pod_id} ({machine.name}) is there after {OLD_POD_GONE_S} seconds in which "
                    "its provider worked"
                )
                raise Broken(2, "an old pod goes, whatever other providers do", machine.run_id, found)

    def _held_up(self, now_s: float) -> None:
        """Check that a run that waits for a machine gets one where a provider works, whatever the others
        do.
        """
        for run_id, truth in self.runs.items():
            run = truth.run
            if (
                run_id not in self.created_runs
                or run.state is not RunState.QUEUED
                or now_s < run.not_before_s
                or run.desired is not DesiredState.RUN
            ):
                self._waits.pop(run_id, None)
                continue
            since = self._waits.setdefault(run_id, {})
            for name, pods in self._market.providers.items():
                if pods.is_sold_out(now_s) or not any(
                    fits(offer, run.spec.hardware) is None for offer in pods.for_rent
                ):
                    since.pop(name, None)
                elif self._able_of[name] - since.setdefault(name, self._able_of[name]) > HELD_UP_S:
                    found = f"it waits for a machine, while {name} has worked for {HELD_UP_S} s"
                    raise Broken(6, "a provider that fails holds up no run", run_id, found)

    def disturbed(self, seconds: float = 0.0) -> None:
        super().disturbed(seconds)
        self._disturbed_own_s = max(self._disturbed_own_s, self._loop.now_s + seconds + DISTURBED_S)

    def troubled(self, name: str, seconds: float) -> None:
        """Note that a call of this provider failed, or was answered with a lie."""
        until_s = self._loop.now_s + seconds + DISTURBED_S
        self._troubled_s[name] = max(self._troubled_s[name], until_s)
        self._disturbed_s = max(self._disturbed_s, until_s)

    def started(self, machine: Machine) -> None:
        """Check the price of a machine that is given an agent."""
        most_usd = self.runs[machine.run_id].run.spec.hardware.usd_per_hour_max
        if most_usd is not None and machine.usd_per_hour > most_usd:
            found = (
                f"{machine.pod_id} costs ${machine.usd_per_hour:.2f}/h, at most ${most_usd:.2f} are allowed"
            )
            raise Broken(3, "no machine above the highest price trains", machine.run_id, found)

    def is_done(self) -> bool:
        return super().is_done() and not self._market.asleep

    def at_the_end(self) -> None:
        super().at_the_end()
        if self._market.living or self._market.asleep:
            left = [*(machine.pod_id for machine in self._market.living), *self._market.asleep]
            raise Broken(2, "no machine is left behind", "", ", ".join(left))

    def _look(self, now_s: float) -> None:
        for run_id in self._stale:
            for machine in self.runs[run_id].machines:
                if machine.gone_s is None and not self._is_current(machine) and self._known(machine):
                    self._left.setdefault(machine.pod_id, self._able_of[machine.offer.provider])
                else:
                    self._left.pop(machine.pod_id, None)
        super()._look(now_s)

    def _known(self, machine: Machine) -> bool:
        """Return whether a watcher can know of the machine: a list has it now, or it is recorded as one that
        may live.
        """
        if not self._market.of(machine).is_hidden(machine):
            return super()._known(machine)
        run = self.runs[machine.run_id].run
        recorded = [attempt.pod_id for attempt in run.attempts if attempt.ended_s is None]
        return machine.pod_id in (*recorded, *(orphan.pod_id for orphan in run.orphans))

    def _doubted(self, truth: Truth, record: RunRecord, attempt: Attempt, sweeping: Sweeping) -> None:
        machine = self._market.by_id.get(attempt.pod_id or "")
        if machine is not None and (
            machine.unpaid_s or (attempt.cause in LOSSES and self._is_denied(machine))
        ):
            return  # it was stopped, and its agent began again, or its provider denied it
        if pod_name(record.run.run_id, attempt.number, attempt.identity) not in self._names:
            return  # no machine was requested
        super()._doubted(truth, record, attempt, sweeping)

    def _is_denied(self, machine: Machine) -> bool:
        return self._market.of(machine).is_denied_lately(machine, SETTLES_S)

    def _same_bill(self, truth: Truth) -> None:
        """Check that the ledger has at least what the providers bill for the machines that could be known."""
        run, now_s = truth.run, self._loop.now_s
        known = [
            machine
            for machine in truth.machines
            if machine.reported and not self._market.of(machine).is_disowned(machine)
        ]
        slack_usd = sum((STEP_S_MAX + 2 * SKEW_S) * machine.usd_per_hour / 3600 for machine in known)
        counted_usd, billed_usd = (
            ledger.totals(run, int(now_s)).usd,
            sum(m.paid_s(now_s) * m.usd_per_hour / 3600 for m in known),
        )
        if counted_usd < billed_usd - slack_usd:
            raise Broken(
                9,
                "the ledger has the bill",
                run.run_id,
                f"${counted_usd:.2f} are counted, ${billed_usd:.2f} are billed",
            )

    def _broken(self, number: int, promise: str, run_id: str, found: str) -> None:  # type: ignore[override]
        if promise not in LEFT_OUT:
            raise Broken(number, promise, run_id, found)


class InPlace(ThreadPoolExecutor):
    """Makes each call where it is submitted. All answers are drawn before, so threads would only take
    time.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except ExternalError as error:
            done.set_exception(error)
        return done


class MarketSimulation(Simulation):
    """A seed with several providers."""

    def play(self) -> None:
        with patch.object(pods_by_provider, "ThreadPoolExecutor", InPlace):
            super().play()

    def _draw_faults(self, rng: random.Random, watchers: int) -> Faults:
        faults = without_provider(super()._draw_faults(rng, watchers))
        if rng.random() >= CALM:
            return faults
        calm = Faults(quiet_s=faults.quiet_s, watchers_down=((),) * watchers)
        lasting = ("preempt_each_s", "notice", "hang_each_s", "trainer", "lasting", "user", "rebel")
        return replace(calm, **{name: getattr(faults, name) for name in lasting})

    def _new_keeper(self) -> MarketKeeper:
        self.market = Market(draw_market(self.luck.rng, self.loop, self.luck, self.faults))
        return MarketKeeper(self.loop, self.faults, self.market, self.bucket)

    def _new_context(self, host: Host) -> Context:
        wallets = tuple(Wallet(pods, self.loop) for pods in self.market.providers.values())
        names = frozenset(self.market.providers)
        return replace(super()._new_context(host), pods=self.market, accounts=wallets, providers=names)

    def _connect_pods(self) -> None:
        keeper = self.keeper
        assert isinstance(keeper, MarketKeeper)
        for name, pods in self.market.providers.items():
            self._connect_provider(
                pods,
                self._effect,
                lambda seconds, name=name: keeper.troubled(name, seconds),  # type: ignore[misc]
            )
            for edge_s in edges(replace(pods.faults, watchers_down=())):
                self.loop.at(edge_s, lambda: None)
        self.market.called, self.market.listed = self._called, self._listed

    def _listed(self, unlisted: frozenset[str]) -> None:
        if self._acting is not None:
            self._acting.seen.lists(answered=True, unlisted=unlisted)

    def _start_agent(self, machine: Machine, ticket: Ticket) -> None:
        assert isinstance(self.keeper, MarketKeeper)
        self.keeper.started(machine)
        super()._start_agent(machine, ticket)

    def _create(self, run: Run) -> None:
        super()._create(run)
        assert isinstance(self.keeper, MarketKeeper)
        self.keeper.created_runs.add(run.run_id)

    def _draw_run(self, rng: random.Random, run_id: str) -> tuple[Run, Work]:
        run, work = super()._draw_run(rng, run_id)
        if rng.random() >= LIMITED:
            return run, work
        hardware = run.spec.hardware
        prices = [offer.usd_per_hour for offer in self.market.for_rent if fits(offer, hardware) is None]
        hardware = hardware.model_copy(
            update={"usd_per_hour_max": min(prices, default=OFFERS[0].usd_per_hour) * rng.uniform(*LIMIT)}
        )
        return replace(run, spec=run.spec.model_copy(update={"hardware": hardware})), work

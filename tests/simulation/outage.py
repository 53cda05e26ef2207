"""One outage over many runs at once: the real store, core and reconcile, and no other fault.

The runs are launched one after the other, so that the outage affects some that are being launched or set up,
some that train, save or flush, and some that a user has just requested to stop. `Played` is the result.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from prime_train.errors import TemporaryError
from prime_train.runs import change as c
from prime_train.runs.breaker import Watch
from prime_train.runs.decide import name_of
from prime_train.runs.run import ACTIVE_STATES, Alert, Attempt, Change, DesiredState, Run
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord
from prime_train.runs.wire import Commit, Heartbeat, Ticket
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.watch.context import Context
from tests.simulation.agent import Work
from tests.simulation.clocks import Host
from tests.simulation.faults import Faults, Window, within
from tests.simulation.loop import START_S
from tests.simulation.promises import Truth
from tests.simulation.provider import Machine
from tests.simulation.webhook import Said, VirtualWebhook
from tests.simulation.world import Stage, WatchedStore, Watcher

RUNS = 200
BEGINS_S = START_S + 1800
LAUNCHED_S = 2100
"""Seconds within which all runs are requested, some of them only during the outage."""
STOPPED = 0.05
"""Share of the runs that a user requests to stop a moment before."""
LAST_S = START_S + 8 * 3600
ENDED = (None, Cause.FINISHED, Cause.STOPPED_GRACEFULLY, Cause.HOURS_SPENT, Cause.BUDGET_SPENT)


class What(StrEnum):
    """What is unavailable, and how."""

    UNHEARD = "calls time out"
    REFUSED = "calls get a 503"
    UNANSWERED = "answers are lost"
    HALF = "half is lost"
    FLAPS = "calls time out, 3 of 4 minutes"
    CUT = "3 of 10 cut off"
    STEPS = "3 of 10 cut off in steps"
    TWO = "2 cut off"
    WATCHERS = "no watcher"
    STORE = "no store"
    PROVIDER = "no provider"


ALL = frozenset({What.UNHEARD, What.REFUSED, What.UNANSWERED, What.STORE, What.FLAPS})
"""Outages that affect every call of agents, and the canary."""
REFUSING = frozenset({What.REFUSED, What.STORE})
CUT_SHARE, CUT_TWO, STEPS = 0.3, 2, 6
FLAP_S, FLAP_OUT_S = 240, 180
NOBODY_SEES = frozenset({What.WATCHERS, What.STORE, What.PROVIDER})
"""Outages during which no loss can be detected."""


@dataclass(frozen=True)
class Outage:
    """An outage. `lost`: share of the machines that are really lost in it, every second of them unknown to
    the provider. `canary`: whether the watchers have one; a cut does not affect it.
    """

    what: What
    minutes: float
    lost: float = 0.0
    also: What | None = None
    """A second part that is unavailable at the same time."""
    canary: bool = True
    looks_s: float = 15.0
    """Seconds between two sweeps of a watcher."""
    watchers: int = 2
    runs: int = RUNS

    @cached_property
    def window(self) -> Window:
        return Window(BEGINS_S, BEGINS_S + self.minutes * 60)

    @cached_property
    def kinds(self) -> frozenset[What]:
        return frozenset({self.what, self.also or self.what})

    @property
    def faults(self) -> Faults:
        """Return the outage for the checker of promises. If watchers return at once, their calls take time,
        so that they overlap.
        """
        span, meet = (self.window,), What.WATCHERS in self.kinds
        return Faults(
            quiet_s=self.window.end_s + 300 if meet else START_S,
            pause=0.02 if meet else 0.0,
            provider_down=span if What.PROVIDER in self.kinds else (),
            watchers_down=(span if meet else (),) * self.watchers,
        )


@dataclass
class Played:
    """The result."""

    runs: int
    ends: Counter[str] = field(default_factory=Counter)
    """The number of runs by their last state."""
    begun: int = 0
    """Number of attempts begun only because of the outage."""
    restarted: int = 0
    """Number of runs with such attempts."""
    causes: Counter[str] = field(default_factory=Counter)
    lost_s: float = 0.0
    """Seconds of training that was repeated or not done because of them."""
    doubled: list[str] = field(default_factory=list)
    """Number of machines requested while another one of that run was still wanted."""
    gone_found_s: list[float] = field(default_factory=list)
    """Seconds until a machine that the provider reported as gone was fenced: from its loss, or from the end
    of an outage in which it could not be noticed.
    """
    frozen_found_s: list[float] = field(default_factory=list)
    """Seconds until one that the provider still reported as active was fenced, from the end of the outage."""
    missed: int = 0
    """Number of lost machines that were not detected."""
    alerts: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    """Alerts of the same kind for the same attempt, beyond the first."""
    unpaid: int = 0
    """Number of runs whose own small budget did not pay for keeping a machine until its last checkpoint was
    acknowledged.
    """
    over_usd: float = 0.0
    """Largest amount by which the bill of a run exceeded its budget."""

    @property
    def restarted_share(self) -> float:
        return self.restarted / self.runs


LISTENED = (
    (30, 90, 300),
    (30, 90, 300),
    (30, 90, 300),
    (10, 30, 120),
    (15, 60, 180),
    (20, 120, 600),
    (60, 180, 300),
    (30, 600, 900),
)
"""Seconds between heartbeats, until overdue, until silent: the usual ones, short ones and long ones."""
USD_SHORT, HOURS_SHORT = 0.5, 0.5


class AwayStore(WatchedStore):
    """A store that is unavailable at times."""

    def __init__(
        self,
        effect: Callable[[str], None],
        loaded: Callable[[str], None],
        saved: Callable[[RunRecord, Change], None],
        away: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(effect, loaded, saved, clock)
        self._away = away

    def _ask(self) -> None:
        if self._away():
            raise TemporaryError("the store does not answer")

    def now_s(self) -> int:
        self._ask()
        return super().now_s()

    def load(self, run_id: str) -> RunRecord | None:
        self._ask()
        return super().load(run_id)

    def save(self, change: Change) -> bool:
        self._ask()
        return super().save(change)

    def due(self, now_s: int, limit: int) -> list[str]:
        self._ask()
        return super().due(now_s, limit)

    def lease_statuses(self) -> list[LeaseStatus]:
        self._ask()
        return super().lease_statuses()

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        self._ask()
        return super().heartbeat(heartbeat, now_s)

    def commit(self, commit: Commit, now_s: int) -> LeaseReply:
        self._ask()
        return super().commit(commit, now_s)

    def enqueue_alert(self, alert: Alert) -> None:
        self._ask()
        super().enqueue_alert(alert)

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        self._ask()
        return super().outbox(limit, lacking=lacking)

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        self._ask()
        return super().mark_sent(key, notifier, among=among)

    def watch(self) -> Watch:
        self._ask()
        return super().watch()

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        self._ask()
        return super().save_watch(watch, version=version)


class AwayWebhook(VirtualWebhook):
    """The result of agents' calls, and of the canary, in that outage."""

    out: Callable[[], frozenset[What]] = staticmethod(frozenset)
    """The parts that are unavailable now."""

    def is_answering(self, now_s: int) -> bool:
        return super().is_answering(now_s) and not self._is_met()

    def _send(
        self, act: Callable[[], Said | None], reply: Callable[[Said | None], None], *, cut: bool
    ) -> None:
        met = self._met()
        if not met:
            super()._send(act, reply, cut=cut)
        elif met & REFUSING:
            reply(None)
        else:
            if not cut and (
                met == {What.UNANSWERED} or (met == {What.HALF} and self._luck.rng.random() < 0.5)
            ):
                act()
            self._silence(reply)

    def _is_met(self) -> bool:
        return bool(self._met())

    def _met(self) -> frozenset[What]:
        """Return the effect of the outage on a call now."""
        out = self.out()
        half = {What.HALF} if What.HALF in out and self._luck.rng.random() < 0.5 else set()
        return (out & ALL) | half


class OutageStage(Stage):
    """The runs, and the outage that affects them."""

    def __init__(self, outage: Outage, seed: int = 0, note: Callable[[str], None] | None = None) -> None:
        self.outage = outage
        self.played = Played(outage.runs)
        self._lost_s: dict[str, float] = {}
        self._found_s: dict[str, float] = {}
        super().__init__(random.Random(seed), outage.watchers, outage.faults, note=note)
        self.pods.created = self._created
        self._plan()

    def play(self) -> Played:
        """Play the outage. Raises Broken if a promise does not hold."""
        self.loop.run(
            lambda: (
                self.loop.now_s >= LAST_S
                or (self.loop.now_s > self.outage.window.end_s and self.keeper.is_done())
            )
        )
        self.keeper.at_the_end()
        return self._told_of()

    # --------------------------------------------------------------------------------------------------------
    # set-up

    def _new_store(self) -> WatchedStore:
        return AwayStore(
            self._effect, self._loaded, self._saved, lambda: What.STORE in self._out(), self._serving.now_s
        )

    def _new_webhook(self) -> VirtualWebhook:
        webhook = AwayWebhook(self.loop, self.luck, self.faults, self.store)
        webhook.out = self._out
        return webhook

    def _new_context(self, host: Host) -> Context:
        world = super()._new_context(host)
        return world if self.outage.canary else Context(**{**vars(world), "canary": None})

    def _is_out(self) -> bool:
        window = self.outage.window
        return window.start_s <= self.loop.now_s < window.end_s

    def _out(self) -> frozenset[What]:
        if not self._is_out():
            return frozenset()
        flaps = (self.loop.now_s - self.outage.window.start_s) % FLAP_S < FLAP_OUT_S
        return self.outage.kinds if flaps else self.outage.kinds - {What.FLAPS}

    def _plan(self) -> None:
        rng, loop, window = self.luck.rng, self.loop, self.outage.window
        for number in range(self.outage.runs):
            run, work = draw_run(rng, number)
            self._works[run.run_id] = work
            self.keeper.runs[run.run_id] = Truth(run, work.steps)
            loop.at(START_S + LAUNCHED_S * number / self.outage.runs, lambda run=run: self._create(run))  # type: ignore[misc]
            if rng.random() < STOPPED:
                loop.at(window.start_s - rng.uniform(0, 60), lambda run_id=run.run_id: self._stop(run_id))  # type: ignore[misc]
        loop.at(window.start_s, self._begin)
        loop.at(window.end_s, self._end)
        for watcher in self._watchers:
            loop.after(rng.uniform(0, self.outage.looks_s), lambda watcher=watcher: self._tick(watcher))  # type: ignore[misc]

    def _create(self, run: Run) -> None:
        self.store.create(run)

    # --------------------------------------------------------------------------------------------------------
    # the outage

    def _begin(self) -> None:
        rng, window = self.luck.rng, self.outage.window
        alive = [machine for machine in self.pods.living if machine.requested_s is None]
        self._cut_off(alive)
        for machine in rng.sample(alive, round(len(alive) * self.outage.lost)):
            self.loop.at(
                rng.uniform(window.start_s, window.end_s),
                lambda machine=machine: self._lose(machine),  # type: ignore[misc]
            )

    def _cut_off(self, alive: Sequence[Machine]) -> None:
        rng, window = self.luck.rng, self.outage.window
        if What.TWO in self.outage.kinds:
            for machine in rng.sample([machine for machine in alive if self._trains(machine)], CUT_TWO):
                machine.cut_until_s = window.end_s
        for machine in alive if {What.CUT, What.STEPS} & self.outage.kinds else ():
            if rng.random() < CUT_SHARE:
                step = rng.randrange(STEPS) if What.STEPS in self.outage.kinds else 0
                at_s = window.start_s + step * (window.end_s - window.start_s) / 2 / STEPS
                self.loop.at(at_s, lambda machine=machine: setattr(machine, "cut_until_s", window.end_s))  # type: ignore[misc]

    def _end(self) -> None:
        """End the outage; all watchers sweep at that very moment."""
        if What.WATCHERS in self.outage.kinds:
            for watcher in self._watchers:
                self._look(watcher)

    def _lose(self, machine: Machine) -> None:
        """Let the machine be lost: the provider ends it, or it freezes and only its agent's silence shows
        that. It has sent heartbeats before.
        """
        truth = self.keeper.runs[machine.run_id]
        if (
            machine.gone_s is not None
            or machine.requested_s is not None
            or truth.holds != machine.attempt
            or self._has_left(machine)
        ):
            return
        self._lost_s[machine.name] = self.loop.now_s
        agent = truth.agents.get(machine.attempt)
        if len(self._lost_s) % 2 or agent is None or agent.sending_since_s is None:
            self.pods.end(machine)
        else:
            machine.frozen_s = self.loop.now_s

    def _trains(self, machine: Machine) -> bool:
        """Return whether the machine has sent heartbeats and has work left. One without heartbeats is no
        evidence that others were lost with it.
        """
        agent = self.keeper.runs[machine.run_id].agents.get(machine.attempt)
        return agent is not None and agent.advancing and agent.sending_since_s is not None

    def _has_left(self, machine: Machine) -> bool:
        """Return whether its agent has ended its attempt, or is about to, which is not a loss."""
        agent = self.keeper.runs[machine.run_id].agents.get(machine.attempt)
        return agent is not None and not agent.advancing

    def _stop(self, run_id: str) -> None:
        if self.keeper.runs[run_id].run.state in ACTIVE_STATES:
            self.keeper.runs[run_id].requested.add(DesiredState.STOP)
            self._write(run_id, lambda run: c.requested(run, DesiredState.STOP, self.store.now_s()))

    # --------------------------------------------------------------------------------------------------------
    # watchers

    def _tick(self, watcher: Watcher) -> None:
        self.loop.after(self.outage.looks_s * self.luck.rng.uniform(0.95, 1.0), lambda: self._tick(watcher))
        if not within(self.faults.watchers_down[watcher.number], self.loop.now_s):
            self._look(watcher)

    def _failed(self, error: Exception) -> None:
        """Accept a failed sweep without a store; the next one replaces it."""
        each = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        if What.STORE not in self.outage.kinds or not all(isinstance(e, TemporaryError) for e in each):
            super()._failed(error)
        self.keeper.disturbed()

    def _start_agent(self, machine: Machine, ticket: Ticket) -> None:
        super()._start_agent(machine, ticket)
        if {What.CUT, What.STEPS} & self._out() and self.luck.rng.random() < CUT_SHARE:
            machine.cut_until_s = self.outage.window.end_s

    def _created(self, name: str) -> None:
        self.keeper.created(name)
        run_id = name.removeprefix("pt-").rsplit("-e", 1)[0]
        self.played.doubled += [
            m.name for m in self.keeper.runs[run_id].machines if m.gone_s is None and m.first_ask_s == 0
        ]

    def _saved(self, old: RunRecord, change: Change) -> None:
        super()._saved(old, change)
        name = name_of(old.run, old.run.attempt)
        if old.run.state in ACTIVE_STATES and change.run.state not in ACTIVE_STATES and name in self._lost_s:
            self._found_s[name] = self.loop.now_s

    # -------------------------------------------------------------------------------------------------------
    # what came of it

    def _told_of(self) -> Played:
        played = self.played
        for run_id, truth in self.keeper.runs.items():
            run = truth.run
            played.ends[run.state.value] += 1
            played.over_usd = max(played.over_usd, self.keeper.bill_usd(truth) - run.spec.budget.usd)
            if _is_unpaid(run):
                played.unpaid += 1
                continue
            idle = [
                place
                for place, attempt in enumerate(run.attempts)
                if attempt.cause not in ENDED and not self._is_lost(run, attempt)
            ]
            played.begun += len(idle)
            played.restarted += bool(idle)
            played.causes.update(
                cause.value for place in idle if (cause := run.attempts[place].cause) is not None
            )
            played.lost_s += sum(_lost_s(run, place, self._works[run_id]) for place in idle)
        self._tell_of_losses()
        reported = Counter(tuple(key.split("/")[:3]) for key in self.keeper.sent)
        played.alerts.update(kind for _, _, kind in reported.elements())
        played.repeated.update(
            {f"{run_id} {kind}": times - 1 for (run_id, _, kind), times in reported.items() if times > 1}
        )
        return played

    def _tell_of_losses(self) -> None:
        played, end_s = self.played, self.outage.window.end_s
        for machine in self.pods.machines:
            lost_s, found_s = self._lost_s.get(machine.name), self._found_s.get(machine.name)
            if lost_s is None:
                continue
            if found_s is None:
                played.missed += 1
            elif machine.frozen_s is not None:
                played.frozen_found_s.append(found_s - end_s)
            else:
                played.gone_found_s.append(found_s - (end_s if NOBODY_SEES & self.outage.kinds else lost_s))

    def _is_lost(self, run: Run, attempt: Attempt) -> bool:
        return name_of(run, attempt.number) in self._lost_s


def _is_unpaid(run: Run) -> bool:
    return run.cause is Cause.UPLOAD_FAILED and run.spec.budget.usd == USD_SHORT


def _lost_s(run: Run, place: int, work: Work) -> float:
    """Return the seconds of training that was not done, or repeated, because that attempt was ended."""
    old, new = run.attempts[place], run.attempts[place + 1] if place + 1 < len(run.attempts) else None
    until_s = next(
        (at_s for at_s in (new and new.first_step_s, new and new.fenced_s, run.ended_s) if at_s),
        old.fenced_s or 0,
    )
    again = max(0, old.last_step - (new.resumed_step if new else old.durable_step))
    return max(0, until_s - (old.last_sign_s or old.launched_s)) + again * work.step_s


def draw_run(rng: random.Random, number: int) -> tuple[Run, Work]:
    """Draw a run that trains for 8 to 50 minutes, with one of several heartbeat settings. One in twenty has
    too small a budget, and one in twenty too few hours.
    """
    work = Work(
        steps=rng.randint(60, 240),
        step_s=rng.uniform(8, 12),
        every=rng.randint(8, 25),
        setup_s=rng.uniform(10, 400),
        upload_s=rng.uniform(3, 90),
        keep=rng.randint(1, 3),
    )
    heartbeat_s, overdue_s, silence_s = rng.choice(LISTENED)
    sections: dict[str, object] = {
        "name": "sim",
        "trainer": {"command": "train", "steps": work.steps},
        "budget": {
            "usd": USD_SHORT if number % 20 == 7 else 200.0,
            "hours": HOURS_SHORT if number % 20 == 13 else None,
        },
        "health": {
            "heartbeat_s": heartbeat_s,
            "overdue_s": overdue_s,
            "silence_s": silence_s,
            "first_heartbeat_s": rng.choice((600, 1200)),
        },
    }
    return Run(f"run-{number:03d}", RunSpec.model_validate(sections), created_s=START_S), work

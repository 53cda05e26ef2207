"""One seed: the real store, core and reconcile between virtual watchers, machines, agents, network and
users.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from prime_train.errors import TemporaryError
from prime_train.runs import change as c
from prime_train.runs.budget import Exhausted, Limit
from prime_train.runs.run import TERMINAL, Alert, Change, DesiredState, IllegalMove, Run, RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.verdict import TrackerObserved
from prime_train.runs.wire import Ticket
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.stores.memory import MemoryStore
from prime_train.watch.context import Context
from prime_train.watch.observe import hears_since
from prime_train.watch.steps import reconcile, reconcile_fully
from prime_train.watch.sweeps import sweep
from tests.simulation.agent import Ties, VirtualAgent, Work
from tests.simulation.bucket import VirtualBucket
from tests.simulation.clocks import Host, ServingHost, draw_host, reached
from tests.simulation.faults import Faults, Luck, draw, edges, within
from tests.simulation.loop import DEPTH_MAX, START_S, Endless, Loop
from tests.simulation.promises import FINISH_S, SWEEP_S, Broken, Keeper, Sweeping, Truth
from tests.simulation.provider import Machine, VirtualPods
from tests.simulation.webhook import VirtualWebhook

RUNS_MAX, WATCHERS_MAX = 5, 3
TIME_UNKNOWN = "the store's time is not known"
EFFECTS_MAX = 40
USER_TRIES_MAX = 5


class Crashed(BaseException):
    """The watcher's process has ended. Not an `Exception`, so that no code in it continues."""


@dataclass
class Watcher:
    """A process on a machine with clocks of its own, and memory that is lost when it crashes.
    `still_until_s`: it is suspended.
    """

    number: int
    host: Host
    world: Context
    still_until_s: float = 0.0


@dataclass
class Acting:
    """The sweep on the stack: what it has observed, and the effect at which it dies."""

    watcher: Watcher
    seen: Sweeping
    dies_at: int
    effects: int = 0


class WatchedStore(MemoryStore):
    """The real memory store. Each call of a watcher is an effect, and each change is passed to the checker of
    promises.
    """

    def __init__(
        self,
        effect: Callable[[str], None],
        loaded: Callable[[str], None],
        saved: Callable[[RunRecord, Change], None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(clock)
        self._effect, self._loaded, self._saved = effect, loaded, saved

    def load(self, run_id: str) -> RunRecord | None:
        record = super().load(run_id)
        self._loaded(run_id)
        self._effect("load")
        return record

    def save(self, change: Change) -> bool:
        self._effect("save")
        old = super().load(change.run.run_id)
        if not super().save(change):
            return False
        assert old is not None
        self._saved(old, change)
        self._effect("saved")
        return True

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        self._effect("claim")
        return super().claim(key, notifier, owner, now_s=now_s, until_s=until_s)

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        self._effect("mark_sent")
        return super().mark_sent(key, notifier, among=among)


class Stage:
    """The parts of one simulation, connected; nothing happens yet. `note` is called for each event, for
    `--verbose`.
    """

    def __init__(
        self, rng: random.Random, watchers: int, faults: Faults, *, note: Callable[[str], None] | None = None
    ) -> None:
        self._note = note
        self._identities = (f"{number:08x}{0:08x}" for number in itertools.count(1))
        self.loop = Loop()
        self.faults = faults
        self.luck = Luck(rng, self.loop, faults.quiet_s)
        self.pods = VirtualPods(self.loop, self.luck, faults)
        self.bucket = VirtualBucket(self.loop, self.luck, faults)
        serving, *hosts = self._new_hosts(1 + watchers)
        self._serving = ServingHost(serving)
        self.store = self._new_store()
        self.webhook = self._new_webhook()
        self.keeper = self._new_keeper()
        self._acting: Acting | None = None
        self._news_due = False
        self._works: dict[str, Work] = {}
        self._ties = Ties(
            self.loop,
            self.luck,
            faults,
            self.webhook,
            self.bucket,
            restored=self.keeper.restored,
            ailing=self._ailing,
        )
        self._watchers = [Watcher(number, host, self._new_context(host)) for number, host in enumerate(hosts)]
        self._connect()

    def _new_hosts(self, count: int) -> list[Host]:
        """Return the machine of store and webhook, and then that of each watcher; here their clocks are
        right.
        """
        return [Host(self.loop) for _ in range(count)]

    def _new_store(self) -> WatchedStore:
        return WatchedStore(self._effect, self._loaded, self._saved, self._serving.now_s)

    def _new_keeper(self) -> Keeper:
        return Keeper(self.loop, self.faults, self.pods, self.bucket)

    def _new_webhook(self) -> VirtualWebhook:
        return VirtualWebhook(self.loop, self.luck, self.faults, self.store)

    def _new_context(self, host: Host) -> Context:
        return Context(
            store=reached(self.store, host, self._asked_time),
            bucket=self.bucket,
            pods=self.pods,
            master=b"master",
            webhook_url="http://webhook",
            notifiers=(self,),
            tracker=self,
            canary=self,
            watched=self._watched,
            new_identity=lambda: next(self._identities),
        )

    # --------------------------------------------------------------------------------------------------------
    # set-up

    def _connect(self) -> None:
        keeper = self.keeper
        self.loop.each = keeper.each
        self._connect_pods()
        self.bucket.called = self._effect
        self.bucket.deleted = keeper.deleting
        self.webhook.news, self.webhook.received, self.webhook.committed = (
            self._news,
            keeper.received,
            keeper.committed,
        )

    def _connect_pods(self) -> None:
        self._connect_provider(self.pods, self._called, self._disturbed)

    def _connect_provider(
        self, pods: VirtualPods, called: Callable[[str], None], disturbed: Callable[[float], None]
    ) -> None:
        pods.called, pods.waits, pods.disturbed, pods.changed = (
            called,
            self._wait,
            disturbed,
            self.keeper.changed,
        )
        pods.created, pods.terminating, pods.started = (
            self.keeper.created,
            self.keeper.terminating,
            self._start_agent,
        )

    # --------------------------------------------------------------------------------------------------------
    # watchers

    def _tick(self, watcher: Watcher) -> None:
        self.loop.after(self.luck.rng.uniform(SWEEP_S - 15, SWEEP_S - 2), lambda: self._tick(watcher))
        if not self._is_away(watcher):
            self._look(watcher)

    def _is_away(self, watcher: Watcher) -> bool:
        now_s = self.loop.now_s
        down = within(self.faults.watchers_down[watcher.number], now_s) or within(self.faults.asleep, now_s)
        return down or now_s < watcher.still_until_s

    def _look(self, watcher: Watcher) -> None:
        self._act(watcher, lambda: sweep(watcher.world))

    def _news(self, run_id: str) -> None:
        """The webhook requests a sweep at once; several requests cause one sweep."""
        if self._news_due or self.luck.rng.random() < 0.3:
            return
        self._news_due = True
        complete = self.luck.rng.random() < 0.7
        self.loop.after(0.2, lambda: self._look_at_once(None if complete else run_id))

    def _look_at_once(self, run_id: str | None) -> None:
        self._news_due = False
        watcher = self.luck.rng.choice(self._watchers)
        if self._is_away(watcher):
            return
        if run_id is None:
            self._look(watcher)
        else:
            self._act(watcher, lambda: reconcile_fully(watcher.world, run_id))

    def _act(self, watcher: Watcher, act: Callable[[], object]) -> None:
        before = self._acting
        dies_at = self.luck.rng.randint(1, EFFECTS_MAX) if self.luck.hit(self.faults.crash) else 0
        self._acting = Acting(watcher, Sweeping(sang=watcher.world.canary is None), dies_at)
        try:
            act()
        except Crashed:
            self._say(f"watcher {watcher.number} crashes")
            watcher.world = self._new_context(watcher.host)
            self.keeper.disturbed()
        except Exception as error:
            self._failed(error)
        finally:
            self._acting = before

    def _failed(self, error: Exception) -> None:
        """A sweep ended with this error."""
        each = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        if all(isinstance(one, TemporaryError) and TIME_UNKNOWN in str(one) for one in each):
            self._say(f"the time is not known: {error}")
            self.keeper.disturbed()
            return
        found = "; ".join(f"{e!r} {getattr(e, '__notes__', '')}" for e in each)
        raise Broken(9, "a look at a run never fails", "", found) from error

    def _effect(self, what: str) -> None:
        """A port is called: the watcher may die here, and others may act before it continues."""
        acting = self._acting
        if acting is None:
            return
        acting.effects += 1
        if acting.effects == acting.dies_at:
            raise Crashed(what)
        # it may do so there, too, but what follows is only a ledger that is off by as much
        if what != "save":
            self._stand_still(acting.watcher)
        quiet = self.luck.quiet
        chance = 0.002 if quiet else self.faults.pause
        if chance and self.luck.rng.random() < chance:
            self._wait(self.luck.rng.choice((0.3, 1.0) if quiet else (0.3, 2.0, 8.0, 20.0)))

    def _stand_still(self, watcher: Watcher) -> None:
        """The watcher's machine sleeps, or its process is suspended; then it continues where it was, without
        noticing.
        """
        now_s = self.loop.now_s
        until_s = next((window.end_s for window in self.faults.asleep if window.has(now_s)), None)
        if until_s is None and self.luck.hit(self.faults.suspended):
            until_s = now_s + self.luck.rng.uniform(60, 1800)
            if self.luck.rng.random() < 0.5:
                watcher.host.paused.append((now_s, until_s))
        if until_s is None:
            return
        if self.loop.depth >= DEPTH_MAX:
            raise Crashed("there is no room to stand still in")
        self._say(f"watcher {watcher.number} stands still for {until_s - now_s:.0f} s")
        watcher.still_until_s = until_s
        self._wait(until_s - now_s)

    def _asked_time(self) -> None:
        """A watcher requests the store's time."""
        self._effect("time")
        if self._acting is not None and self.luck.hit(self.faults.time_lost):
            raise TemporaryError(f"{TIME_UNKNOWN}: the store does not answer")

    def _wait(self, seconds: float) -> None:
        acting, self._acting = self._acting, None
        if not self.luck.quiet:
            self.keeper.disturbed(seconds)
        try:
            self.loop.spend(seconds)
        finally:
            self._acting = acting

    def _called(self, what: str) -> None:
        """A call to the provider is made."""
        acting = self._acting
        if acting is not None and what == "list":
            acting.seen.lists(answered=False)
        self._effect(what)
        if acting is not None and what == "listed":
            acting.seen.lists(answered=True)

    def _loaded(self, run_id: str) -> None:
        if self._acting is not None:
            self._acting.seen.loads(run_id)

    def _disturbed(self, seconds: float) -> None:
        self.keeper.disturbed(seconds)

    def _saved(self, old: RunRecord, change: Change) -> None:
        if self._note is not None:
            for line in change.events:
                self._say(f"{line.run_id} e{line.attempt} v{change.run.version} {line.kind}: {line.text}")
        self.keeper.saved(old, change, self._acting.seen if self._acting is not None else None)

    # ------------------------------------------------------------------------------------------------- ports
    # of the watchers

    def send(self, alert: Alert, run: Run | None) -> None:
        """Deliver an alert, as the notifier."""
        self._effect("send")
        if self.luck.hit(self.faults.notifier_error):
            raise TemporaryError("nobody answers")
        self.keeper.delivered(alert)

    def is_answering(self, now_s: int) -> bool:
        """Send the canary."""
        sang = self.webhook.is_answering(now_s)
        if self._acting is not None:
            self._acting.seen.listens(sang=sang)
        self._effect("canary")
        return sang

    def look(self, run: Run) -> TrackerObserved | None:
        """Return the tracker's data: it receives steps from every trainer that runs, also from a replaced
        one.
        """
        self._effect("tracker")
        agents = self.keeper.runs[run.run_id].agents.values()
        received = [
            (at_s, agent.step_now()) for agent in agents if (at_s := agent.heard_by_tracker_s) is not None
        ]
        if not received or self.luck.hit(self.faults.tracker_lost):
            return None
        at_s, step = max(received)
        if self._acting is not None:
            self._acting.seen.tracked_s[run.run_id] = int(at_s)
        return TrackerObserved(step, int(at_s))

    def _watched(self, run_id: str, what: str, text: str) -> None:
        if self._note is not None and text:
            self._say(f"{run_id} {what} {text}")

    # ---------------------------------------------------------------------------------------------------
    # agents and users

    def _start_agent(self, machine: Machine, ticket: Ticket) -> None:
        # what the agent does at once is no effect of the watcher that put it there
        acting, self._acting = (
            self._acting,
            None,
        )
        try:
            agent = machine.tenant = self._new_agent(machine, ticket.identity)
        finally:
            self._acting = acting
        self.keeper.runs[machine.run_id].agents[machine.attempt] = agent

    def _new_agent(self, machine: Machine, identity: str) -> VirtualAgent:
        return VirtualAgent(self._ties, machine, self._works[machine.run_id], identity)

    def _ailing(self, run_id: str, attempt: int, cause: Cause | None, kind: str) -> None:
        self._say(f"{run_id} e{attempt} falls ill: {kind} {cause.value if cause else ''}")
        self.keeper.runs[run_id].ailments[attempt].add(cause)

    def _write(self, run_id: str, change: Callable[[Run], Change]) -> None:
        for _ in range(USER_TRIES_MAX):
            record = self.store.load(run_id)
            assert record is not None
            try:
                if self.store.save(change(record.run)):
                    return
            except IllegalMove:
                return

    def _say(self, text: str) -> None:
        if self._note is not None:
            self._note(f"{self.loop.now_s - START_S:9.1f}  {text}")


class Simulation(Stage):
    """One seed with all of its parts. `finish_s`: seconds after the last fault within which every run has to
    be over.
    """

    finish_s = FINISH_S

    def __init__(self, seed: int, note: Callable[[str], None] | None = None) -> None:
        rng = random.Random(seed)
        watchers = rng.randint(1, WATCHERS_MAX)
        super().__init__(rng, watchers, self._draw_faults(rng, watchers), note=note)
        self.seed = seed
        self._plan()

    def play(self) -> None:
        """Play the seed to its end. Raises Broken."""
        last_s = self.faults.quiet_s + self.finish_s
        try:
            self.loop.run(
                lambda: (
                    self.loop.now_s >= last_s
                    or (self.loop.now_s >= self._all_there_s and self.keeper.is_done())
                )
            )
        except Endless as error:
            raise Broken(6, "the simulation ends", "", str(error)) from error
        self.keeper.at_the_end()

    def _new_hosts(self, count: int) -> list[Host]:
        """Draw the machines. The serving machine's clock is right when the first process starts there, and is
        set at random times from then on.
        """
        rng, quiet_s = self.luck.rng, self.faults.quiet_s
        return [draw_host(rng, self.loop, quiet_s, skewed=number > 0) for number in range(count)]

    def _plan(self) -> None:
        rng, loop = self.luck.rng, self.loop
        for window in self.faults.asleep:
            loop.at(window.end_s, self._wakes)
        for edge_s in edges(self.faults):
            loop.at(edge_s, lambda: None)
        self._all_there_s = float(START_S)
        for number in range(rng.randint(1, RUNS_MAX)):
            run, work = self._draw_run(rng, f"run-{number}")
            at_s = START_S + rng.uniform(0, 1200) * (number > 0)
            self._all_there_s = max(self._all_there_s, at_s)
            self._works[run.run_id] = work
            self.keeper.runs[run.run_id] = Truth(run, work.steps)
            loop.at(at_s, lambda run=run: self._create(run))  # type: ignore[misc]
        loop.after(rng.uniform(60, 600), self._person_looks)
        for watcher in self._watchers:
            loop.after(rng.uniform(0, SWEEP_S), lambda watcher=watcher: self._tick(watcher))  # type: ignore[misc]

    def _draw_faults(self, rng: random.Random, watchers: int) -> Faults:
        return draw(rng, watchers)

    def _draw_run(self, rng: random.Random, run_id: str) -> tuple[Run, Work]:
        return _draw_run(rng, run_id)

    def _wakes(self) -> None:
        """The serving machine continues, and so do its processes; another process may be started there at
        this time, too.
        """
        hears_since(self.store, self.store.now_s())
        self._serving.start()

    def _create(self, run: Run) -> None:
        self.store.create(run)
        if self.luck.hit(self.faults.user):
            self.loop.after(self.luck.rng.uniform(60, 4000), lambda: self._interfere(run.run_id))

    def _person_looks(self) -> None:
        """A user runs one step for one run by hand, outside of any sweep."""
        if not self.luck.quiet:
            self.loop.after(self.luck.rng.uniform(100, 900), self._person_looks)
        run_id = self.luck.rng.choice(list(self._works))
        watcher = self.luck.rng.choice(self._watchers)
        if not self._is_away(watcher):
            self._act(watcher, lambda: reconcile(watcher.world, run_id, watcher.world.store.now_s()))

    def _interfere(self, run_id: str) -> None:
        """A user stops or cancels the run, and may resume it later."""
        desired = self.luck.rng.choice((DesiredState.STOP, DesiredState.STOP, DesiredState.CANCEL))
        record = self.store.load(run_id)
        if record is None or record.run.state in TERMINAL:
            self._let_go_on(run_id)
            return
        self.keeper.runs[run_id].requested.add(desired)
        self._write(run_id, lambda run: c.requested(run, desired, self.store.now_s()))
        if self.luck.rng.random() < 0.7:
            self.loop.after(self.luck.rng.uniform(30, 1500), lambda: self._let_go_on(run_id))

    def _let_go_on(self, run_id: str) -> None:
        record = self.store.load(run_id)
        if record is not None and record.run.state in (RunState.STOPPED, RunState.CANCELLED, RunState.FAILED):
            with suppress(Exhausted):  # its hours are used up: this user leaves it at that
                self._write(run_id, lambda run: c.resumed(run, self.store.now_s(), {Limit.USD: 200.0}))


def _draw_run(rng: random.Random, run_id: str) -> tuple[Run, Work]:
    work = Work(
        steps=rng.randint(60, 150),
        step_s=rng.uniform(4, 15),
        every=rng.randint(8, 25),
        setup_s=rng.uniform(10, 200),
        upload_s=rng.uniform(3, 90),
        keep=rng.randint(1, 3),
    )
    budget: dict[str, object] = {"usd": 200.0, "restarts_without_progress": rng.randint(2, 5)}
    if rng.random() < 0.25:
        budget["usd"] = rng.uniform(0.15, 1.2)
    if rng.random() < 0.1:
        budget["hours"] = rng.uniform(0.2, 2)
    health = {
        "silence_s": rng.choice((180, 300, 300, 600)),
        "first_heartbeat_s": rng.choice((600, 1200)),
        "first_step_s": rng.choice((900, 1800)),
        "settle_s": rng.choice((60, 120)),
        "drain_s": rng.choice((120, 600)),
    }
    sections: dict[str, object] = {
        "name": "sim",
        "trainer": {"command": "train", "steps": work.steps if rng.random() < 0.8 else None},
        "budget": budget,
        "hardware": {"spot": rng.choice(("prefer", "prefer", "only", "never"))},
        "health": health,
        "wandb": {"project": "sim"} if rng.random() < 0.3 else None,
    }
    return Run(run_id, RunSpec.model_validate(sections), created_s=START_S), work

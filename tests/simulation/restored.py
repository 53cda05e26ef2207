"""The simulation with one more fault: the store is restored from an older copy of itself, at random times.

The restore follows the runbook: no watcher and no webhook runs meanwhile, and what starts then adopts the
bucket's newer records before it listens, if the bucket answers. All other faults continue. The promises in
`HELD` must still hold; the other ones are about a history that is lost with the store.
"""

import copy
import random
from collections.abc import Callable
from typing import Any

from prime_train.errors import ExternalError
from prime_train.runs.run import Change
from prime_train.runs.store import LeaseReply, RunRecord
from prime_train.runs.wire import Commit, Outcome
from prime_train.watch.attempt_records import catch_up_all
from tests.simulation.promises import Broken, Keeper, Sweeping
from tests.simulation.world import Simulation

RESTORES_MAX = 3
AGE_S = (1, 2500)
"""Range of the copy's age in seconds."""
RETRY_S = 5
HELD = frozenset(
    {
        "only the current attempt is heard",
        "at most one attempt can commit",
        "no durable step is lost",
        "what is restored is whole",
        "what is resumed is whole",
        "one pod an attempt",
        "intent before action",
        "spend stays within the budget",
        "an old pod goes",
        "nothing is done over and over",
        "no machine is terminated on Unknown",
        "a healthy run is never destroyed",
        "a look at a run never fails",
        "every run ends",
        "the simulation ends",
    }
)


class RestoredKeeper(Keeper):
    """Checks `HELD` alone. An attempt is known by its identity: each commits for itself."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.caught_up = 0

    def _broken(self, number: int, promise: str, run_id: str, found: str) -> None:  # type: ignore[override]
        if promise in HELD:
            raise Broken(number, promise, run_id, found)

    def committed(self, commit: Commit, answer: LeaseReply) -> None:
        truth = self.runs[commit.run]
        attempt = truth.run.current_attempt
        if answer.outcome is not Outcome.FENCED and (attempt is None or attempt.identity != commit.identity):
            raise Broken(
                1,
                "no attempt commits for its twin",
                commit.run,
                f"attempt {commit.attempt} ({commit.identity}) committed",
            )
        acked = truth.acked
        super().committed(commit, answer)
        truth.acked = max(truth.acked, acked)

    def saved(self, old: RunRecord, change: Change, sweeping: Sweeping | None) -> None:
        if not any(line.kind == "restored" for line in change.events):
            super().saved(old, change, sweeping)
            return
        self.caught_up += 1
        self.put_back({change.run.run_id: change.run})
        self._alerted(self.runs[change.run.run_id], old.run, change)

    def put_back(self, runs: dict[str, Any]) -> None:
        """The store has been restored to these runs."""
        for run_id, truth in self.runs.items():
            if run_id in runs:
                truth.run = runs[run_id]
                self._stale.add(run_id)
        for kept in (self._wrong, self._lost, self._unsettled):
            kept.clear()
        self._waits_for = None


class RestoredSimulation(Simulation):
    """A seed of `Simulation`, whose store is restored now and then."""

    def __init__(self, seed: int, note: Callable[[str], None] | None = None) -> None:
        self._depth = 0
        self.restores = 0
        super().__init__(seed, note)

    def _new_keeper(self) -> RestoredKeeper:
        return RestoredKeeper(self.loop, self.faults, self.pods, self.bucket)

    def _connect(self) -> None:
        super()._connect()
        # what it may know better has to be known before anything is done
        self.bucket.failed = self.keeper.disturbed

    def _plan(self) -> None:
        super()._plan()
        rng = random.Random(f"restored {self.seed}")
        begin_s = self.loop.now_s
        for _ in range(rng.randint(1, RESTORES_MAX)):
            at_s = rng.uniform(begin_s + 100, self.faults.quiet_s)
            age_s = min(rng.uniform(*AGE_S), at_s - begin_s - 50)
            self.loop.at(at_s - age_s, lambda at_s=at_s: self._copy(at_s))  # type: ignore[misc]

    def _act(self, *given: Any) -> None:
        self._depth += 1
        try:
            super()._act(*given)
        finally:
            self._depth -= 1

    def _copy(self, until_s: float) -> None:
        kept = {name: copy.copy(value) for name, value in vars(self.store).items() if name in STATE}
        kept["_sent_by"] = {key: set(names) for key, names in kept["_sent_by"].items()}
        kept["_history"] = {run_id: list(lines) for run_id, lines in kept["_history"].items()}
        self._say(f"the store is copied, for second {until_s - self.loop.now_s:.0f} from now")
        self.loop.at(until_s, lambda: self._put_back(kept))

    def _put_back(self, kept: dict[str, Any]) -> None:
        if self._depth:  # a watcher is in the middle of a look: it has to end first
            self.loop.after(RETRY_S, lambda: self._put_back(kept))
            return
        lost = [run for run_id, run in vars(self.store)["_runs"].items() if run_id not in kept["_runs"]]
        # launched after the copy was made: such runs are lost, as the runbook says; that is another story
        if lost:
            return
        vars(self.store).update(kept)
        self.restores += 1
        self._say("the store is put back to its copy")
        assert isinstance(self.keeper, RestoredKeeper)
        self.keeper.put_back(kept["_runs"])
        self.keeper.disturbed()
        for watcher in self._watchers:
            watcher.world = self._new_context(watcher.host)
        try:
            caught = catch_up_all(self.store, self.bucket, b"master", self.store.now_s())
            self._say(f"catches up: {caught}")
        except ExternalError as error:
            self._say(f"cannot catch up now: {error}")

    @property
    def caught_up(self) -> int:
        """Return how often a run's newer record was adopted from the bucket."""
        assert isinstance(self.keeper, RestoredKeeper)
        return self.keeper.caught_up


STATE = frozenset({"_runs", "_leases", "_history", "_alerts", "_unsent", "_sent_by", "_claims", "_watch"})
"""The attributes with the state of a store in memory."""

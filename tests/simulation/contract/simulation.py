"""The simulation with trainers that break the contract, each in a way of its own, beside all other faults.

What is promised of such runs, besides what `promises.py` says:

10  A run is `succeeded` only if the weights of its last step are whole in the bucket; and if they are, it is,
although its process crashed. 11  Nothing is tried for ever: attempts that a trainer ends without a new
durable step are at most `restarts_without_progress` and `CHECKPOINTS_TRIED_MAX` together; the same error at
the same step comes twice; no machine is rented after the memory did not suffice for a new durable step; a run
goes back at most `rollback_times`; and a service that does not answer ends at most `OUTAGES_MAX` attempts in
a row. 12  The newest checkpoint that is proven, the newest that is good, and the one that the trainer calls
its best stay in the bucket. 13  A run resumes from the newest good checkpoint of its own past: from an older
one, or from step 0, only where the newer ones are distrusted, not finite, or after a divergence, or lost in
the bucket; and it is given up for want of one only if those that it tried were bad. What the fenced attempt
still writes while the others are read may be left out.

In some seeds the bucket loses the newest checkpoint of runs that have just lost their machine.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from prime_train.buckets.keys import Mark, mark_prefix, marked, parse_manifest_key
from prime_train.checkpoints.manifest import Manifest
from prime_train.runs.next_action import OUTAGES_MAX, alike
from prime_train.runs.resuming.trust import CHECKPOINTS_TRIED_MAX, OUTSIDE
from prime_train.runs.run import ACTIVE_STATES, TERMINAL, Attempt, Change, Run, RunState
from prime_train.runs.store import RunRecord
from prime_train.spec.causes import Cause
from tests.simulation.agent import VirtualAgent, Work
from tests.simulation.contract.trainers import (
    CRASHES,
    OUT_OF_MEMORY,
    ContractAgent,
    Habit,
    Trainer,
    draw_trainer,
    with_habit,
)
from tests.simulation.faults import windows
from tests.simulation.loop import START_S
from tests.simulation.promises import FINISH_S, Keeper, Truth
from tests.simulation.provider import Machine
from tests.simulation.world import Simulation

LOSING_SEEDS = 4
"""One seed in so many has a bucket that loses checkpoints."""
LOSS_SHARE = 0.2
"""Share of the fences there after which the newest checkpoint turns out to be lost."""
HANGS = (Cause.START_TIMEOUT, Cause.STALLED, Cause.GPU_IDLE)
OUTAGE_S = (300, 4000)
FOR_EVER_S = 10**6
FOR_EVER_SHARE = 0.04
"""Share of the outages that never end."""
OUTAGE_ENDS_S = OUTAGES_MAX * 2400
"""Seconds within which a run ends for which a service never answers."""


@dataclass
class Past:
    """What truly happened to a run. `resumed`: step and attempt of the checkpoint that each attempt was to
    restore; `tried`: attempts in a row that its trainer ended without a new durable step; `blamed`: those of
    them that could not resume; `outages`: attempts in a row that a service ended; `resumes`: how often a
    person let it go on; `fenced_s`: when the newest of its attempts was fenced.
    """

    trainer: Trainer
    resumed: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    tried: int = 0
    blamed: int = 0
    outages: int = 0
    rollbacks: int = 0
    best_acked: int = 0
    best_at_fence: int = 0
    died: set[tuple[int, int]] = field(default_factory=set)
    """Step and attempt of the checkpoints with which a trainer ended before its first step, by its own
    report.
    """
    has_lost: bool = False
    """Whether the bucket has lost a checkpoint since the last choice."""
    starved: int = 0
    """The newest attempt, if its trainer ran out of memory before a new step was durable; else 0."""
    resumes: int = 0
    fenced_s: float = 0.0


class ContractKeeper(Keeper):
    """Checks the promises about such trainers."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pasts: dict[str, Past] = {}

    # --------------------------------------------------------------------------------------------------------
    # the bucket

    def removing(self, key: str) -> None:
        run_id = key.split("/")[1]
        if parse_manifest_key(run_id, key) is None:
            return
        whole = self.whole(run_id)
        by_key = {m.key: m for m in whole}
        gone = by_key.get(key)
        if gone is None:
            return
        marks = marked(run_id, [stat.key for stat in self._bucket.stats(mark_prefix(run_id))])
        good = [
            m for m in whole if m.finite is not False and (m.step, m.attempt) not in marks[Mark.DISTRUSTED]
        ]
        for what, among in (
            ("good", good),
            ("proven", [m for m in good if (m.step, m.attempt) in marks[Mark.PROVEN]]),
        ):
            if among and among[0].key == key:
                self._broken(12, f"the newest {what} checkpoint stays", run_id, f"{key} is deleted")
        best_step = next(
            (m.best_step for m in whole if m.best_step is not None and m.step <= self.runs[run_id].acked),
            None,
        )
        if gone.step == best_step and gone == next(m for m in whole if m.step == best_step):
            self._broken(12, "the best checkpoint stays", run_id, f"{key} is deleted")

    def whole(self, run_id: str) -> list[Manifest]:
        """Return the checkpoints that are whole in the bucket, the newest first."""
        whole = [m for m in self._bucket.manifests(run_id) if self._bucket.is_complete(m.key)]
        return sorted(whole, key=lambda m: (m.step, m.attempt), reverse=True)

    # --------------------------------------------------------------------------------------------------------
    # resuming

    def _chosen(self, old: Run, new: Run) -> None:
        """A change of what is resumed. The choice itself is checked at the launch, because it may also be the
        same as before.
        """
        point = new.resume
        if old.state is not RunState.QUEUED or old.resume_chosen:
            self._broken(
                1,
                "what is resumed is chosen once, after the fence",
                new.run_id,
                f"{point} in {new.state.value}",
            )
        if point is not None and not self._bucket.is_complete(point.key):
            self._broken(1, "what is resumed is whole", new.run_id, f"{point.key} is not")
        truth, past = self.runs[new.run_id], self.pasts[new.run_id]
        if point is not None and point.step > max(truth.acked_at_fence, old.durable_step):
            # It is progress once: to reach that step again after going back behind it is none, as if it had
            # been committed.
            truth.strikes = past.tried = past.blamed = 0
            past.best_acked = past.best_at_fence = max(past.best_acked, point.step)

    def chose(self, old: Run, new: Run) -> None:
        """What is resumed was chosen, after a fence."""
        run_id, point, truth = new.run_id, new.resume, self.runs[new.run_id]
        faults = {one.place for one in old.distrusted}
        limits = self._limits(new)
        past = [m for m in self.whole(run_id) if m.step <= limits.get((m.attempt, m.identity), -1)]
        good = [
            m
            for m in past
            if (m.step, m.attempt) not in faults and m.finite is not False and not self._is_doubted(old, m)
        ]
        if new.unresumable:
            self._given_up(old, new, past)
            return
        if old.rolls_back:
            proven = {place for place in self._proven(old) if place is not None}
            good = [m for m in good if (m.step, m.attempt) in proven] or good
        fenced_s = int(self.pasts[run_id].fenced_s)
        newest = next(
            (place for place, m in enumerate(good) if self._bucket.written_s(m.key) < fenced_s), None
        )
        if newest is not None and (point is None or point.key not in {m.key for m in good[: newest + 1]}):
            self._broken(
                13,
                "the newest good checkpoint is resumed",
                run_id,
                f"{point}, and {good[newest].key} is good",
            )
        died = {place for place in self.pasts[run_id].died if place not in set(self._proven(old))}
        if (
            point is not None
            and (point.step, point.attempt) in died
            and any((m.step, m.attempt) not in died for m in good)
        ):
            self._broken(
                13,
                "what an attempt died of is not restored again",
                run_id,
                f"{point.key}, and a good one is left",
            )
        if (
            point is not None
            and (point.step, point.attempt) in faults
            and any((m.step, m.attempt) not in faults for m in past)
        ):
            self._broken(13, "what an attempt died of is not restored again", run_id, f"{point.key}")
        step = point.step if point is not None else 0
        if step < truth.acked:
            truth.acked = truth.acked_at_fence = step
            truth.acked_attempt = 0
        # what is trained again is progress
        if self.pasts[run_id].has_lost and step < self.pasts[run_id].best_acked:
            self.pasts[run_id].best_acked = self.pasts[run_id].best_at_fence = step
        self.pasts[run_id].has_lost = False

    def _given_up(self, old: Run, new: Run, past: list[Manifest]) -> None:
        trainer = self.pasts[new.run_id].trainer
        untried = [
            m
            for m in past
            if trainer.loads(m.step) and (m.step, m.attempt) not in {one.place for one in old.distrusted}
        ]
        if old.resume_failures < CHECKPOINTS_TRIED_MAX and untried:
            self._broken(
                13,
                "a run is not given up while a good checkpoint is left",
                new.run_id,
                f"{untried[0].key} was never tried",
            )

    def _is_doubted(self, run: Run, manifest: Manifest) -> bool:
        return run.finite_limit is not None and manifest.step > run.finite_limit

    def _proven(self, run: Run) -> Iterator[tuple[int, int] | None]:
        resumed = self.pasts[run.run_id].resumed
        return (resumed.get(attempt.number) for attempt in run.attempts if attempt.first_step_s is not None)

    def _limits(self, run: Run) -> dict[tuple[int, str], int]:
        """Return up to which step the checkpoints of each attempt belong to what the run has trained, by what
        was restored in truth.
        """
        resumed, limits = self.pasts[run.run_id].resumed, {}
        limit, number = 10**12, run.attempt
        identities = {attempt.number: attempt.identity for attempt in run.attempts}
        while number in resumed:
            limits[number, identities.get(number, "")] = limit
            place = resumed[number]
            if place is None:
                break
            limit, number = min(limit, place[0]), place[1]
        return limits

    # -----------------------------------------------------------------------------------------------------
    # attempts and ends

    def saved(self, old: RunRecord, change: Any, sweeping: Any) -> None:
        if any(line.kind == "resume_chosen" for line in change.events):
            self.chose(old.run, change.run)
        super().saved(old, change, sweeping)

    def _moved(self, truth: Truth, old: RunRecord, change: Any, sweeping: Any) -> None:
        super()._moved(truth, old, change, sweeping)
        if old.run.state in TERMINAL:
            past = self.pasts[truth.run.run_id]
            past.tried = past.blamed = past.outages = past.rollbacks = past.starved = 0
            past.resumes += 1

    def _launched(self, truth: Truth, old: Run) -> None:
        new, past = truth.run, self.pasts[truth.run.run_id]
        past.resumed[new.attempt] = (new.resume.step, new.resume.attempt) if new.resume else None
        past.best_acked = max(past.best_acked, truth.acked)
        limit = new.spec.budget.restarts_without_progress
        if truth.strikes >= limit:
            self._broken(
                9,
                "restarts without progress end",
                new.run_id,
                f"{truth.strikes} attempts in a row made no checkpoint",
            )
        if past.tried >= limit + CHECKPOINTS_TRIED_MAX:
            self._broken(
                11,
                "nothing is tried for ever",
                new.run_id,
                f"{past.tried} attempts in a row made no checkpoint",
            )
        if past.blamed >= CHECKPOINTS_TRIED_MAX:
            self._broken(
                11,
                "nothing is tried for ever",
                new.run_id,
                f"{past.blamed} checkpoints in a row could not be resumed from",
            )
        if past.outages > OUTAGES_MAX:
            self._broken(
                11,
                "nothing is tried for ever",
                new.run_id,
                f"{past.outages} attempts in a row ended by an outage",
            )
        if past.starved:
            self._broken(
                11,
                "nothing is tried for ever",
                new.run_id,
                f"attempt {past.starved} ran out of memory, and nothing new was durable",
            )
        if past.rollbacks > new.spec.health.rollback_times:
            self._broken(11, "nothing is tried for ever", new.run_id, f"it went back {past.rollbacks} times")
        self._same_twice(new, past)
        strikes = truth.strikes
        super()._launched(truth, old)
        truth.strikes = strikes

    def _same_twice(self, run: Run, past: Past) -> None:
        known = [
            a
            for a in run.attempts[:-1]
            if a.cause in (Cause.TRAINER_ERROR, Cause.CUDA_ERROR) and a.last_step > a.resumed_step
        ]
        ends = [(a.cause, alike(a.detail), a.last_step) for a in known if a.number > run.renewed_attempt]
        for end in set(ends):
            if ends.count(end) > 2 + past.resumes:
                self._broken(
                    11,
                    "the same error at the same step ends a run",
                    run.run_id,
                    f"{end} came {ends.count(end)} times",
                )

    def _count(self, truth: Truth, attempt: Attempt) -> None:
        past, run = self.pasts[truth.run.run_id], truth.run
        past.fenced_s = self._loop.now_s
        if any(one.failed == attempt.number for one in run.distrusted) and not self._may_be_blamed(
            truth, attempt
        ):
            self._broken(
                13,
                "a checkpoint is distrusted only for what a trainer did",
                run.run_id,
                f"{attempt.cause} in {attempt.number}",
            )
        past.best_acked = max(past.best_acked, truth.acked)
        gained = past.best_acked > past.best_at_fence
        past.best_at_fence = past.best_acked
        starved = attempt.cause in OUT_OF_MEMORY and truth.acked <= truth.acked_at_fence
        past.starved = attempt.number if starved else 0
        truth.acked_at_fence = truth.acked
        is_done = truth.acked == truth.steps and run.spec.trainer.steps is not None
        if is_done and attempt.cause in CRASHES and run.state is not RunState.SUCCEEDED:
            self._broken(
                10,
                "finished work is finished",
                run.run_id,
                f"{attempt.cause} after step {truth.acked} was durable",
            )
        past.outages = past.outages + 1 if attempt.cause is Cause.NETWORK_ERROR and not gained else 0
        past.rollbacks += attempt.cause is Cause.NOT_FINITE
        if gained:
            truth.strikes = past.tried = past.blamed = 0
            return
        strikes = truth.strikes
        super()._count(truth, attempt)
        blamed = self._is_blamed(run, attempt, past)
        if truth.strikes > strikes or blamed:
            past.tried += 1
        if blamed and truth.strikes > strikes and len(run.strikes) == strikes:
            truth.strikes = strikes

    def _may_be_blamed(self, truth: Truth, attempt: Attempt) -> bool:
        """Return whether the trainer of the attempt truly ended, or hung, after it was given a checkpoint and
        before its first step.
        """
        agent, place = (
            truth.agents.get(attempt.number),
            self.pasts[truth.run.run_id].resumed.get(attempt.number),
        )
        if agent is None or place is None or agent.step_now() or place in set(self._proven(truth.run)):
            return False
        return attempt.cause in (*truth.ailments[attempt.number], *HANGS) and attempt.cause not in OUTSIDE

    def _is_blamed(self, run: Run, attempt: Attempt, past: Past) -> bool:
        """Return whether the attempt's trainer ended before its first step, after it was given a checkpoint
        that had never been resumed from, although the trainer itself had worked before.
        """
        agent, place = self.runs[run.run_id].agents.get(attempt.number), past.resumed.get(attempt.number)
        if (
            agent is None
            or agent.step_now()
            or place is None
            or attempt.cause in OUTSIDE
            or attempt.cause is None
        ):
            return False
        reported = bool(past.trainer.ends) and past.trainer.ends[-1][0] is attempt.cause
        worked = any(other.first_step_s is not None for other in run.attempts)
        if not reported or not worked or place in set(self._proven(run)):
            return False
        past.died.add(place)
        past.blamed += 1
        return True

    def _is_due(self, truth: Truth, old: Run, new: Run) -> bool:
        past, ends = self.pasts[new.run_id], self.pasts[new.run_id].trainer.ends
        match new.state:
            case RunState.SUCCEEDED:
                is_early = Cause.STOPPED_EARLY in truth.ailments[new.attempt]
                if not is_early and not any(m.step == truth.steps for m in self.whole(new.run_id)):
                    self._broken(10, "no run is green without its weights", new.run_id, new.why)
                return super()._is_due(truth, old, new)
            case RunState.FAILED if ends and ends[-1][0] is new.cause:
                cause, words, step, _ = ends[-1]
                same = sum(1 for end in ends if end[:3] == (cause, words, step))
                last = same >= 2 or (cause is Cause.NETWORK_ERROR and past.outages >= OUTAGES_MAX - 1)
                return last or super()._is_due(truth, old, new)
            case RunState.STOPPED if new.unresumable:
                return True  # checked when it was chosen
            case _:
                return super()._is_due(truth, old, new)


class ContractSimulation(Simulation):
    """One seed with trainers that break the contract."""

    def __init__(self, seed: int, note: Callable[[str], None] | None = None) -> None:
        self._pasts: dict[str, Past] = {}
        super().__init__(seed, note)

    def trainer_of(self, run_id: str) -> Trainer:
        return self._pasts[run_id].trainer

    def _new_keeper(self) -> ContractKeeper:
        keeper = ContractKeeper(self.loop, self.faults, self.pods, self.bucket)
        keeper.pasts = self._pasts
        return keeper

    def _saved(self, old: RunRecord, change: Change) -> None:
        super()._saved(old, change)
        if old.run.state in ACTIVE_STATES and change.run.state is RunState.QUEUED:
            self._lose(change.run)

    def _lose(self, run: Run) -> None:
        """Lose the manifest of the newest checkpoint, or a blob that only it has, after some of the
        fences.
        """
        if self.seed % LOSING_SEEDS != LOSING_SEEDS // 2:
            return
        assert isinstance(self.keeper, ContractKeeper)
        draw, whole = (
            random.Random(f"loss {self.seed} {run.run_id} {run.attempt}"),
            self.keeper.whole(run.run_id),
        )
        if not whole or draw.random() >= LOSS_SHARE:
            return
        shared = {key for manifest in whole[1:] for key in manifest.blobs()}
        key = draw.choice([whole[0].key, *sorted(whole[0].blobs().keys() - shared)])
        self.bucket.lose(key)
        self._pasts[run.run_id].has_lost = True
        self._say(f"{run.run_id} the bucket loses {key}")

    def _connect(self) -> None:
        super()._connect()
        assert isinstance(self.keeper, ContractKeeper)
        self.bucket.removing = self.keeper.removing

    def _draw_run(self, rng: random.Random, run_id: str) -> tuple[Run, Work]:
        run, work = super()._draw_run(rng, run_id)
        work = replace(work, keep=rng.randint(1, 8))
        run = with_habit(run, work, rng)
        outages = windows(rng, self.faults.quiet_s, 1, *OUTAGE_S)
        trainer = draw_trainer(rng, run, work, self.faults.quiet_s, outages)
        if trainer.habit is Habit.OUTAGE and rng.random() < FOR_EVER_SHARE:
            trainer.outages = (replace(outages[0], start_s=START_S, end_s=START_S + FOR_EVER_S),)
            self.finish_s = OUTAGE_ENDS_S
        self._pasts[run_id] = Past(trainer)
        return run, work

    finish_s = 4 * FINISH_S
    """Such runs begin again more often, and none of them is cured when the other faults end."""

    def _new_agent(self, machine: Machine, identity: str) -> VirtualAgent:
        trainer = self._pasts[machine.run_id].trainer
        return ContractAgent(self._ties, machine, self._works[machine.run_id], identity, trainer)

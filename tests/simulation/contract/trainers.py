"""Trainers that break the contract, in virtual time: each run has one habit, on every machine, and none of
them ends with the faults.

A contract is what a config promises: that saves become complete, that what is saved can be loaded, that
figures are finite, and that the exit code tells how the work ended. A habit shows in what the agent sees; the
agent itself behaves as the real one.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from prime_train.checkpoints.manifest import Manifest
from prime_train.runs.run import Run
from prime_train.runs.wire import Heartbeat, JobExit
from prime_train.spec.after_steps import is_done_despite
from prime_train.spec.causes import Action, Cause
from prime_train.spec.choices import OnDivergence
from tests.simulation.agent import Ties, VirtualAgent, Work
from tests.simulation.faults import Windows, within
from tests.simulation.provider import Machine

SAVES_LATE = 2
"""Number of expected saves after which the agent tells that none became complete."""
COMPLETES_S = (30, 900)
"""Seconds after its end within which the last save of a trainer may become complete after all."""


class Habit(StrEnum):
    NEVER_COMPLETE = "its saves begin, and none becomes complete"
    REMOVES_LAST = "it removes its last checkpoint before that is uploaded"
    UNLOADABLE = "some of its checkpoints cannot be loaded"
    NOT_FINITE = "its loss is not finite from a step on"
    CRASHES_AT_END = "it crashes after its last step"
    CRASHES_AT_STEP = "it crashes at the same step each time"
    CRASHES_AFTER_SAVES = "it crashes again and again, after new checkpoints"
    OUT_OF_MEMORY = "it runs out of memory again and again, after new checkpoints or before any"
    OUTAGE = "a service that it needs does not answer for a while"


CRASHES = (Cause.TRAINER_ERROR, Cause.CUDA_ERROR, Cause.KILLED, Cause.COLLECTIVE_TIMEOUT)
UNLOADED = (Cause.BAD_CHECKPOINT, Cause.TRAINER_ERROR)
OUT_OF_MEMORY = (Cause.GPU_OOM, Cause.HOST_OOM)


@dataclass
class Trainer:
    """The trainer of one run. `at_step`: the step at which its habit shows; `share`: how many of its
    checkpoints cannot be loaded; `crashes_left`: how often it still ends early, so that its checkpoints are
    restored; `is_cured`: whether a rollback helps; `completes`: whether its last save becomes complete in the
    end; `saves_last`: whether it saves at all before it crashes; `words`: how many different errors it
    reports.
    """

    habit: Habit
    cause: Cause
    at_step: int
    share: float = 0.0
    crashes_left: int = 0
    is_cured: bool = False
    completes: bool = False
    saves_last: bool = True
    words: int = 1
    outages: Windows = ()
    seed: str = ""
    ends: list[tuple[Cause, str, int, int]] = field(default_factory=list)
    """How its attempts ended, as their agents reported: cause, words, the step that was reached and the one
    that was restored.
    """

    def loads(self, step: int) -> bool:
        """Return whether the checkpoint of that step can be loaded."""
        return (
            self.habit is not Habit.UNLOADABLE or random.Random(f"{self.seed} {step}").random() >= self.share
        )

    def loss(self, step: int) -> float:
        """Return the loss by which it tells which checkpoint is its best."""
        return random.Random(f"loss {self.seed} {step}").random()


def draw_trainer(rng: random.Random, run: Run, work: Work, quiet_s: float, outages: Windows) -> Trainer:
    """Draw the trainer of a run."""
    habit = rng.choice(tuple(Habit))
    causes = {
        Habit.UNLOADABLE: UNLOADED,
        Habit.OUT_OF_MEMORY: OUT_OF_MEMORY,
        Habit.NOT_FINITE: (Cause.NOT_FINITE,),
    }
    causes[Habit.OUTAGE] = (Cause.NETWORK_ERROR,)
    return Trainer(
        habit=habit,
        cause=rng.choice(causes.get(habit, CRASHES)),
        at_step=rng.randint(1, work.steps - 1),
        share=rng.choice((0.3, 0.6, 0.9, 1.0)),
        crashes_left=rng.randint(1, 4),
        is_cured=rng.random() < 0.5,
        completes=rng.random() < 0.3,
        saves_last=rng.random() < 0.6,
        words=rng.choice((1, 1, 2, 100)),
        outages=outages,
        seed=f"{run.run_id} {rng.random()}",
    )


class ContractAgent(VirtualAgent):
    """One attempt of a trainer with a habit."""

    def __init__(self, ties: Ties, machine: Machine, work: Work, identity: str, trainer: Trainer) -> None:
        self.trainer = trainer
        self._best: tuple[float, int] | None = None
        self._nan_since: int | None = None
        """The step from which on this attempt's loss is not finite; None: it never is."""
        self._completed = False
        super().__init__(ties, machine, work, identity)

    # --------------------------------------------------------------------------------------------------------
    # its course

    def _begin(self, run: Run) -> None:
        health = run.spec.health
        self._diverges_after = None if health.on_divergence is OnDivergence.ALERT else health.not_finite_steps
        self._rolled_back = run.rollbacks > 0
        self._steps_known = run.spec.trainer.steps
        super()._begin(run)

    def _train(self, ailment: str, *, lasting: bool) -> None:
        super()._train(ailment, lasting=lasting)
        if self.begun_s is None or not self.alive or self._exit is not None:
            return
        self._carry_over()
        match self.trainer.habit:
            case Habit.UNLOADABLE if self._resume is not None and not self.trainer.loads(self.base):
                self._crash_at(self._first_s - 1, self.trainer.cause)
            case Habit.UNLOADABLE | Habit.NOT_FINITE if (
                self.trainer.crashes_left > 0 and self._t.luck.rng.random() < 0.7
            ):
                self._crash_after_saves(self._t.luck.rng.choice((Cause.KILLED, Cause.CUDA_ERROR)))
            case Habit.CRASHES_AT_STEP if self.trainer.at_step >= self.base:
                self._crash_at(self._after(self.trainer.at_step), self.trainer.cause)
            case Habit.OUT_OF_MEMORY if not self.trainer.saves_last:
                self._crash_at(
                    self._after(self.base + self._t.luck.rng.randint(1, self.work.every)), self.trainer.cause
                )
            case Habit.CRASHES_AFTER_SAVES | Habit.OUT_OF_MEMORY:
                self._crash_after_saves(self.trainer.cause)
            case Habit.OUTAGE:
                self._look_out()
            case Habit.REMOVES_LAST:
                self._removes = True
            case _:
                pass
        if self._nan_since is not None and self._diverges_after is not None:
            self._crash_at(
                self._when(self._nan_since + self._diverges_after - 1 - self.base) + 0.02, Cause.NOT_FINITE
            )

    def _carry_over(self) -> None:
        """Load what the restored checkpoint holds: the best step so far, and weights that may not be
        finite.
        """
        restored = next(
            (m for m in self._t.bucket.manifests(self.run_id) if self._resume and m.key == self._resume.key),
            None,
        )
        if restored is not None and restored.best_step is not None:
            self._best = self.trainer.loss(restored.best_step), restored.best_step
        if self.trainer.habit is not Habit.NOT_FINITE or (self.trainer.is_cured and self._rolled_back):
            return
        self._nan_since = (
            self.base + 1
            if restored is not None and restored.finite is False
            else max(self.trainer.at_step, self.base + 1)
        )

    def _after(self, step: int) -> float:
        """Return when that step is over, and the next one has begun."""
        made = step - self.base
        return self._when(made) + 0.6 * self._step_s if made > 0 else self._first_s - 1

    def _crash_after_saves(self, cause: Cause) -> None:
        step = self.base + int(self.work.every * self._t.luck.rng.uniform(1.5, 4))
        if step < self.work.steps:
            self._crash_at(self._after(step), cause)

    def _crash_at(self, at_s: float, cause: Cause) -> None:
        self._t.loop.at(max(at_s, self._t.loop.now_s), lambda: self._crash(cause))

    def _crash(self, cause: Cause) -> None:
        made = self._made(self._t.loop.now_s)
        if (
            not self.alive
            or self._exit is not None
            or self._flush_for is not None
            or self._stopped_s is not None
        ):
            return
        if made >= self.work.steps - self.base and made:
            return
        self._stopped_s = self._t.loop.now_s
        self.trainer.crashes_left -= 1
        if cause is Cause.NOT_FINITE and self._nan_since is not None and self.base + made < self._nan_since:
            return
        self._end(cause)

    def _end(self, cause: Cause) -> None:
        """Report that the trainer's process ended by this cause, once its complete checkpoints are
        durable.
        """
        self._ails(cause, "exit")
        words = (
            f"error {'abcdefghij'[self._t.luck.rng.randrange(min(10, self.trainer.words))]} of {cause.value}"
        )
        action = self._t.luck.rng.choice((None, Action.BACK_OFF)) if cause is Cause.NETWORK_ERROR else None
        self._flush_existing(JobExit(cause=cause, detail=words, code=1, action=action))

    def _flush_existing(self, ended: JobExit) -> None:
        if not self.alive or self._exit is not None:
            return
        if self._uploading:
            self._t.loop.after(3, lambda: self._flush_existing(ended))
        else:
            self._leave(ended)

    def _leave(self, ended: JobExit) -> None:
        if self._exit is None:
            step = max(self.step_now(), self.base)
            self.trainer.ends.append((ended.cause, ended.detail, step, self.base))
        super()._leave(ended)

    def _look_out(self) -> None:
        """End by a network error while the service does not answer."""
        if not self.alive or self._exit is not None:
            return
        if within(self.trainer.outages, self._t.loop.now_s):
            self._crash(Cause.NETWORK_ERROR)
        else:
            self._t.loop.after(self._t.luck.rng.uniform(20, 60), self._look_out)

    # --------------------------------------------------------------------------------------------------------
    # saves

    def _checkpoint(self, step: int) -> tuple[Manifest, dict[str, bytes]]:
        manifest, blobs = super()._checkpoint(step)
        loss = self.trainer.loss(step)
        is_finite = self._nan_since is None or step < self._nan_since
        if is_finite and (self._best is None or loss < self._best[0]):
            self._best = loss, step
        best_step = self._best[1] if self._best is not None else None
        since = None if is_finite else self._nan_since
        return manifest.model_copy(
            update={"finite": is_finite, "not_finite_since": since, "best_step": best_step}
        ), blobs

    def _upload(self, step: int, then: Callable[[], None] | None) -> None:
        if self.trainer.habit is not Habit.NEVER_COMPLETE or self._completed:
            super()._upload(step, then)
        elif then is not None:  # an order to leave, and nothing can be uploaded
            self._fail_to_save()

    # --------------------------------------------------------------------------------------------------------
    # end

    def _finish(self) -> None:
        made = self._made(self._t.loop.now_s)
        ready = self.alive and self._exit is None and self._flush_for is None and self._stopped_s is None
        if not ready or made < self.work.steps - self.base:
            super()._finish()
            return
        match self.trainer.habit:
            case Habit.NEVER_COMPLETE if self._uploaded < self.work.steps:
                self._wait_for_save()
            case Habit.CRASHES_AT_END:
                self._crash_at_end()
            case _:
                super()._finish()

    def _crash_at_end(self) -> None:
        self._stopped_s = self._t.loop.now_s
        cause = self.trainer.cause
        self._ails(cause, "exit at the end")
        ended = JobExit(cause=cause, detail=f"error at the end of {cause.value}", code=139)
        if not self.trainer.saves_last:
            self._flush_existing(ended)
            return
        # An agent of today knows that the work is done; an older one leaves that to the control plane.
        if self.trainer.completes and is_done_despite(
            cause, self._steps_known, reached=self.work.steps, durable_step=self.work.steps
        ):
            ended = ended.model_copy(update={"cause": Cause.FINISHED})
        self._flush_with(ended)

    def _wait_for_save(self) -> None:
        """Keep the machine, which has the only copy, until somebody orders otherwise or the save is complete
        after all.
        """
        self._stopped_s = self._t.loop.now_s
        self._ails(Cause.UPLOAD_FAILED, "never complete")
        self._flush_for = JobExit(cause=Cause.FINISHED, code=0, saved_step=0)
        self.phase = self.phase.FLUSH
        self._say()
        if self.trainer.completes:
            self._t.loop.after(self._t.luck.rng.uniform(*COMPLETES_S), self._complete)

    def _complete(self) -> None:
        if self.alive and self._exit is None and self._flush_for is not None and not self._completed:
            self._completed = True
            ended = JobExit(cause=Cause.FINISHED, code=0, saved_step=self.work.steps)
            self._flush_for = ended
            self._flush_on(ended)

    def _flush(self, cause: Cause) -> None:
        kept = (
            self.trainer.habit is Habit.NEVER_COMPLETE and self._flush_for is not None and not self._completed
        )
        if kept and self.alive and self._exit is None:
            self._fail_to_save()  # whoever ordered the end gets it
        else:
            super()._flush(cause)

    def notice(self) -> None:
        super().notice()
        if (
            self.trainer.habit is Habit.NEVER_COMPLETE
            and self.alive
            and self._exit is None
            and self._flush_for is not None
        ):
            self._fail_to_save()

    def _fail_to_save(self) -> None:
        if not self._completed:
            self._ails(Cause.UPLOAD_FAILED, "never complete")
            self._leave(JobExit(cause=Cause.UPLOAD_FAILED, detail=self._unsaved()))

    # --------------------------------------------------------------------------------------------------------
    # heartbeats

    def _unsaved(self) -> str:
        if self.trainer.habit is not Habit.NEVER_COMPLETE or self._completed:
            return ""
        late = self._made(self._t.loop.now_s) > SAVES_LATE * self.work.every or self._flush_for is not None
        return "6 entries in out/, none of them is complete" if late else ""

    def _now(self) -> Heartbeat:
        message, made = super()._now(), self._made(self._t.loop.now_s)
        step, since = self.base + made if made else 0, self._nan_since
        is_nan = since is not None and step >= since
        finite_step = step if not is_nan else since - 1 if since is not None and since - 1 > self.base else 0
        return message.model_copy(
            update={
                "unsaved": self._unsaved(),
                "not_finite_since": since if is_nan else None,
                "finite_step": finite_step,
                "restored_step": self.base or None,
                "loss": None if is_nan or not step else self.trainer.loss(step),
            }
        )


def with_habit(run: Run, work: Work, rng: random.Random) -> Run:
    """Return the run with a config that declares its saves, and says what is done about figures that are not
    finite.
    """
    spec = run.spec
    health = {
        "on_divergence": rng.choice(
            (OnDivergence.STOP, OnDivergence.ALERT, OnDivergence.ROLLBACK, OnDivergence.ROLLBACK)
        ),
        "not_finite_steps": rng.choice((rng.randint(1, 10), rng.randint(10, 50))),
        "rollback_times": rng.randint(1, 3),
    }
    budget = {"upload_usd": rng.uniform(0.05, 0.5)}
    return replace(
        run,
        spec=spec.model_copy(
            update={
                "health": spec.health.model_copy(update=health),
                "budget": spec.budget.model_copy(update=budget),
                "checkpoints": spec.checkpoints.model_copy(
                    update={"every_steps": work.every, "keep": work.keep}
                ),
            }
        ),
    )

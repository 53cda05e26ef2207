"""The agent and its trainer in virtual time: the agent's contract, without its code.

It sends heartbeats with jitter and rising numbers, uploads every checkpoint (blobs, manifest, commit), obeys
orders, stops at `fenced`, repeats its last report until it is answered, and never stops because no answer
arrives. Steps are not events: the trainer's step is computed from the time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prime_train.buckets.keys import blob_prefix, mark_prefix, marked
from prime_train.checkpoints.catalog import Blob, Catalog
from prime_train.checkpoints.manifest import Manifest, unreferenced
from prime_train.checkpoints.retention import RetentionPolicy, expired
from prime_train.runs.budget import GIVE_BACK_S, agent_limits_s, training_s
from prime_train.runs.ledger import burn_usd_per_s
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Run
from prime_train.runs.store import LeaseReply, RunRecord
from prime_train.runs.wire import Commit, Heartbeat, JobExit, Order, Outcome, Phase
from prime_train.spec.causes import POLICY, Cause, Retry
from tests.simulation.bucket import VirtualBucket, checkpoint
from tests.simulation.faults import Faults, Luck
from tests.simulation.loop import Loop
from tests.simulation.provider import Machine
from tests.simulation.webhook import VirtualWebhook

RETRY_S = 15
PAUSE_S = (60, 170)
"""A pause between two steps that is within the step deadline."""
SPELL_S = (240, 480)
"""A pause that may be beyond the step deadline, and ends."""
LOOK_AGAIN_S = (10, 250)
HEARD_S = 150
"""Seconds after a pause within which its end may still be unknown to the control plane."""
SLOW_AFTER_STEPS = 6
BLOB_GRACE_S = 900
TROUBLE_S = 240
EARLIER = (
    Cause.PREFLIGHT_FAILED,
    Cause.SETUP_FAILED,
    Cause.RESTORE_FAILED,
    Cause.VERIFY_FAILED,
    Cause.SMOKE_FAILED,
)
MENDABLE = (
    Cause.TRAINER_ERROR,
    Cause.CUDA_ERROR,
    Cause.NETWORK_ERROR,
    Cause.KILLED,
    Cause.DISK_FULL,
    Cause.AGENT_ERROR,
    Cause.COLLECTIVE_TIMEOUT,
    Cause.PREEMPTED,
)
LASTING = (
    Cause.GPU_OOM,
    Cause.IMPORT_ERROR,
    Cause.NOT_FINITE,
    Cause.ZERO_REWARD,
    Cause.LOG_RULE,
    Cause.STOPPED_EARLY,
)
SAVED_FIRST = (Cause.ZERO_REWARD, Cause.LOG_RULE)
AILMENTS = ("hang", "exit", "exit", "early_exit", "idle", "mute", "slow_start", "removes")


@dataclass(frozen=True)
class Work:
    """The work of a run."""

    steps: int
    step_s: float
    every: int
    setup_s: float
    upload_s: float
    keep: int


@dataclass
class Ties:
    """The agent's connections to its environment. `restored` and `ailing` report the truth to the checker of
    promises.
    """

    loop: Loop
    luck: Luck
    faults: Faults
    webhook: VirtualWebhook
    bucket: VirtualBucket
    restored: Callable[[str, int, ResumePoint | None], None]
    ailing: Callable[[str, int, Cause | None, str], None]


class VirtualAgent:
    """One attempt on one machine."""

    def __init__(self, ties: Ties, machine: Machine, work: Work, identity: str) -> None:
        self._t, self._machine, self.work, self.identity = ties, machine, work, identity
        self.run_id, self.attempt = machine.run_id, machine.attempt
        self.phase = Phase.PREFLIGHT
        self.over = False
        self.well = True
        """Whether the agent has no fault: evidence, if it arrived, would show progress."""
        self.base = 0
        self.begun_s: float | None = None
        self.sending_since_s: float | None = None
        self._first_s = 0.0
        self._stopped_s: float | None = None
        self._pauses: list[tuple[float, float]] = []
        self._spells: list[tuple[float, float]] = []
        self._resume: ResumePoint | None = None
        self._slow_s: float | None = None
        self._seq = 0
        self._news = True
        self._preempting = False
        self._sick: Cause | None = None
        self._evidence: bool | None = None
        self._exit: JobExit | None = None
        self._saving = False
        self._uploading = False
        self._upload_began_s: float | None = None
        self._uploaded = 0
        self._acked = 0
        self._flush_for: JobExit | None = None
        self._removes = False
        """Whether its trainer deletes its last checkpoint before it is uploaded."""
        self._train_s_max: int | None = None
        self.early_usd = 0.0
        """Dollars by which its own limit may come too early: for machines that were still paid for when it
        was told the limit.
        """
        self._step_s = work.step_s * ties.luck.rng.uniform(0.8, 1.25)
        self._bootstrap()

    # --------------------------------------------------------------------------------------------------------
    # truth

    @property
    def alive(self) -> bool:
        return not self.over and self._machine.runs(self._t.loop.now_s)

    @property
    def advancing(self) -> bool:
        """Return whether everything works, and the attempt progresses to the last step."""
        fine = (
            self.alive
            and self.well
            and self._exit is None
            and self._flush_for is None
            and not self._preempting
        )
        return fine and not any(
            at_s <= self._t.loop.now_s < at_s + length_s + HEARD_S for at_s, length_s in self._spells
        )

    @property
    def warned(self) -> bool:
        """Return whether the agent has been notified of a preemption."""
        return self._preempting

    @property
    def heard_by_tracker_s(self) -> float | None:
        """Return when the agent last reported a step to the tracker."""
        return self.rose_s() if self.alive and self.begun_s is not None and self.step_now() else None

    def step_now(self) -> int:
        """Return the newest step over all attempts; 0 before the first one of this attempt."""
        made = self._made(self._t.loop.now_s)
        return self.base + made if made else 0

    def rose_s(self) -> float:
        """Return when the step last rose."""
        made = self._made(self._t.loop.now_s)
        assert self.begun_s is not None
        return self._when(made) if made else self.begun_s

    def notice(self) -> None:
        """Notify the agent that the machine is about to be preempted."""
        if self.alive and not self._preempting and self._exit is None:
            self._preempting = True
            self._say()
            self._flush(Cause.PREEMPTED)

    # --------------------------------------------------------------------------------------------------------
    # start

    def _bootstrap(self) -> None:
        if self.alive:
            self._t.webhook.bootstrap(self.run_id, self._bootstrapped, cut=self._cut())

    def _bootstrapped(self, record: RunRecord | None) -> None:
        if not self.alive or self.sending_since_s is not None:
            return
        if record is None:
            self._t.loop.after(RETRY_S, self._bootstrap)
        elif not record.lease.open or (record.lease.attempt, record.lease.identity) != (
            self.attempt,
            self.identity,
        ):
            self.over = True
        else:
            self._begin(record.run)

    def _begin(self, run: Run) -> None:
        loop, rng = self._t.loop, self._t.luck.rng
        self._resume, self._slow_s = run.resume, run.step_slow_s
        self.base = self._uploaded = self._acked = run.resume.step if run.resume else 0
        if run.spec.budget.hours is not None:
            self._train_s_max = max(0, int(run.spec.budget.hours * 3600) - training_s(run, int(loop.now_s)))
        save_in_s, spent_in_s = agent_limits_s(run, int(loop.now_s))
        if save_in_s is not None and spent_in_s is not None:
            loop.after(save_in_s, lambda: self._flush(Cause.BUDGET_SPENT))
            loop.after(spent_in_s, self._give_up_flush)
            others_usd_per_s = burn_usd_per_s(run) - self._machine.usd_per_hour / 3600
            self.early_usd = max(0.0, others_usd_per_s * GIVE_BACK_S)
        self._t.restored(self.run_id, self.attempt, run.resume)
        self.sending_since_s = loop.now_s
        self._heartbeat_s = run.spec.health.heartbeat_s
        self._set_up(rng.uniform(0.5, 1.5) * self.work.setup_s)
        self._keep_sending()

    def _set_up(self, seconds: float) -> None:
        luck, loop = self._t.luck, self._t.loop
        ailment = luck.rng.choice(AILMENTS) if luck.hit(self._t.faults.trainer) else ""
        lasting = luck.rng.random() < self._t.faults.lasting
        self.phase = Phase.SETUP
        if ailment == "early_exit":
            named = [c for c in EARLIER if (POLICY[c].retry is Retry.NEVER) is lasting]
            cause = luck.rng.choice(named)
            loop.after(seconds * luck.rng.random(), lambda: self._ail(cause, "exit"))
        elif ailment == "slow_start":
            self._ails(None, "slow_start")
        else:
            loop.after(seconds, lambda: self._train(ailment, lasting=lasting))

    def _train(self, ailment: str, *, lasting: bool) -> None:
        if not self.alive or self._flush_for is not None or self._exit is not None:
            return
        luck, loop = self._t.luck, self._t.loop
        self.phase = Phase.TRAIN
        self.begun_s = loop.now_s
        self._first_s = self.begun_s + luck.rng.uniform(5, 60)
        at_s = self._first_s
        while luck.rng.random() < 0.3:
            at_s += luck.rng.uniform(100, 900)
            spell = luck.hit(self._t.faults.trainer)
            length_s = luck.rng.uniform(*(SPELL_S if spell else PAUSE_S))
            self._pauses.append((at_s, length_s))
            if spell:
                self._spells.append((at_s, length_s))
            at_s += length_s
        if ailment == "removes":
            self._removes = True
        elif ailment:
            at_s = self._first_s + luck.rng.expovariate(1 / 400)
            cause = luck.rng.choice(LASTING if lasting else MENDABLE)
            if at_s < luck.quiet_s:
                loop.at(at_s, lambda: self._ail(cause, ailment))
        loop.at(self._when(self.work.steps - self.base), self._finish)
        loop.at(self._first_s, self._say_first_step)
        if self._train_s_max is not None:
            loop.at(self._first_s + self._train_s_max, lambda: self._flush(Cause.HOURS_SPENT))
        self._save_later()

    def _say_first_step(self) -> None:
        if self.alive and self._exit is None:
            self._say()

    # -------------------------------------------------------------------------------------------------------
    # how far it is

    def _made(self, now_s: float) -> int:
        """Return the number of steps of this attempt."""
        if self.begun_s is None:
            return 0
        until_s = now_s if self._stopped_s is None else min(now_s, self._stopped_s)
        at_s = until_s - sum(
            min(length_s, until_s - pause_s) for pause_s, length_s in self._pauses if until_s > pause_s
        )
        if at_s < self._first_s:
            return 0
        return min(self.work.steps - self.base, 1 + int((at_s - self._first_s + 1e-6) / self._step_s))

    def _when(self, made: int) -> float:
        """Return when this many steps of this attempt are made, if nothing stops it."""
        at_s = self._first_s + max(0, made - 1) * self._step_s
        for pause_s, length_s in self._pauses:
            at_s += length_s if at_s > pause_s else 0.0
        return at_s

    # --------------------------------------------------------------------------------------------------------
    # ailments

    def _ails(self, cause: Cause | None, kind: str) -> None:
        self.well = False
        self._t.ailing(self.run_id, self.attempt, cause, kind)

    def _ail(self, cause: Cause, kind: str) -> None:
        if not self.alive or self._exit is not None or self._flush_for is not None or not self.well:
            return
        if self._made(self._t.loop.now_s) >= self.work.steps - self.base and self.begun_s is not None:
            return
        self._stopped_s = self._t.loop.now_s
        match kind:
            case "hang":
                self._ails(None, "hang")
            case "mute":
                self._ails(None, "mute")
                self.over = True
            case "idle":
                self._ails(Cause.GPU_IDLE, "idle")
                self._sick = Cause.GPU_IDLE
                self._say()
            case _:
                self._ails(cause, "exit")
                message = Cause.FINISHED if cause is Cause.STOPPED_EARLY else cause
                ended = JobExit(cause=message, detail="made up", code=0 if message is Cause.FINISHED else 1)
                (self._flush_with if cause in SAVED_FIRST else self._leave)(ended)

    # --------------------------------------------------------------------------------------------------------
    # checkpoints

    def _save_later(self) -> None:
        made = self._made(self._t.loop.now_s)
        step = (self.base + made) // self.work.every * self.work.every + self.work.every
        if step < self.work.steps:
            self._t.loop.at(self._when(step - self.base) + 0.01, lambda: self._save(step))

    def _save(self, step: int) -> None:
        if (
            not self.alive
            or self._exit is not None
            or self._flush_for is not None
            or self._stopped_s is not None
        ):
            return
        if not self._uploading:
            self._upload(step, None)
        self._save_later()

    def _upload(self, step: int, then: Callable[[], None] | None) -> None:
        if self._upload_began_s is None:
            self._upload_began_s = self._t.loop.now_s
        manifest, blobs = self._checkpoint(step)
        parts = [*blobs.items(), (manifest.key, manifest.model_dump_json().encode())]
        self._uploading = True
        self._ship(step, parts, manifest, then)

    def _checkpoint(self, step: int) -> tuple[Manifest, dict[str, bytes]]:
        return checkpoint(self.run_id, self.attempt, step, self._t.loop.now_s, self.identity)

    def _ship(
        self, step: int, parts: list[tuple[str, bytes]], manifest: Manifest, then: Callable[[], None] | None
    ) -> None:
        """Upload the next part after its time; the manifest is the last one."""
        part_s = self.work.upload_s / 3 * self._t.luck.rng.uniform(0.5, 1.5)
        self._t.loop.after(part_s, lambda: self._shipped(step, parts, manifest, then))

    def _shipped(
        self, step: int, parts: list[tuple[str, bytes]], manifest: Manifest, then: Callable[[], None] | None
    ) -> None:
        if not self.alive:
            return
        if not self._t.bucket.fails():
            self._t.bucket.put_quietly(*parts[0])
            parts = parts[1:]
        if parts:
            self._ship(step, parts, manifest, then)
        elif self._t.bucket.is_complete(manifest.key):
            self._uploaded = step
            self._commit(manifest, then)
        else:  # what it said was up is not: again, after a while
            self._t.loop.after(
                self._t.luck.rng.uniform(*LOOK_AGAIN_S),
                lambda: self._upload(step, then) if self.alive else None,
            )

    def _commit(self, manifest: Manifest, then: Callable[[], None] | None) -> None:
        if not self.alive:
            return
        wish = Commit(
            run=self.run_id,
            attempt=self.attempt,
            step=manifest.step,
            key=manifest.key,
            identity=self.identity,
        )
        self._t.webhook.commit(wish, lambda answer: self._committed(answer, manifest, then), cut=self._cut())

    def _committed(
        self, answer: LeaseReply | None, manifest: Manifest, then: Callable[[], None] | None
    ) -> None:
        if not self.alive:
            return
        if answer is None:
            self._t.loop.after(RETRY_S, lambda: self._commit(manifest, then))
            return
        self._uploading = False
        if answer.outcome is Outcome.FENCED:
            self._fenced()
            return
        self._acked, self._upload_began_s = max(self._acked, manifest.step), None
        if self._t.luck.rng.random() < 0.3:
            self._prune()
        if then is not None:
            then()

    def _prune(self) -> None:
        bucket, pinned = self._t.bucket, [self._resume.key] if self._resume else []
        newest_first = tuple(
            sorted(bucket.manifests(self.run_id), key=lambda m: (m.step, m.attempt), reverse=True)
        )
        there = {stat.key: Blob(stat.size, stat.written_s) for stat in bucket.stats(blob_prefix(self.run_id))}
        marks = marked(self.run_id, [stat.key for stat in bucket.stats(mark_prefix(self.run_id))])
        policy = RetentionPolicy(self.work.keep)
        kept = Catalog(self.run_id, newest_first, there, frozenset(), marks=marks).kept(policy)
        gone = expired(kept, policy, committed_step=self._acked, pinned=pinned)
        for one in gone:
            bucket.remove(one.key)
        if gone:
            blobs, now_s = bucket.blobs_written_s(self.run_id), int(self._t.loop.now_s)
            for key in unreferenced(blobs, bucket.manifests(self.run_id), now_s=now_s, grace_s=BLOB_GRACE_S):
                bucket.remove(key)

    # --------------------------------------------------------------------------------------------------------
    # ends

    def _finish(self) -> None:
        """Make the last step: first the last checkpoint is uploaded, then the last report is sent."""
        if (
            not self.alive
            or self._exit is not None
            or self._flush_for is not None
            or self._stopped_s is not None
        ):
            return
        if self._made(self._t.loop.now_s) < self.work.steps - self.base:
            self._t.loop.at(self._when(self.work.steps - self.base) + 0.01, self._finish)
            return
        ended = JobExit(cause=Cause.FINISHED, code=0, saved_step=self.work.steps)
        if self._removes and not self._uploading:
            self._ails(Cause.UPLOAD_FAILED, "removes")
            self._leave(ended)
        else:
            self._flush_with(ended)

    def _flush(self, cause: Cause) -> None:
        if self.alive and self._exit is None and self._flush_for is None:
            if self.begun_s is None:
                self._leave(JobExit(cause=cause))
            else:
                self._flush_with(JobExit(cause=cause))

    def _flush_with(self, ended: JobExit) -> None:
        self._flush_for = ended
        self.phase = Phase.FLUSH
        if self._stopped_s is None:
            self._stopped_s = self._t.loop.now_s
        self._say()
        self._flush_on(ended)

    def _flush_on(self, ended: JobExit) -> None:
        if not self.alive:
            return
        if self._uploading:
            self._t.loop.after(3, lambda: self._flush_on(ended))
        elif (step := self.step_now()) > self._uploaded:
            self._upload(step, lambda: self._leave(ended))
        else:
            self._leave(ended)

    def _give_up_flush(self) -> None:
        """Leave, done or not: the dollars are spent."""
        if self.alive and self._exit is None:
            self._leave(JobExit(cause=Cause.BUDGET_SPENT))

    def _leave(self, ended: JobExit) -> None:
        if self._exit is not None:
            return
        self._exit = ended
        self.phase = Phase.EXITED
        self._say()

    def _fenced(self) -> None:
        if not self._machine.rebel:
            self.over = True

    # --------------------------------------------------------------------------------------------------------
    # heartbeats

    def _cut(self) -> bool:
        return self._t.loop.now_s < self._machine.cut_until_s

    def _keep_sending(self) -> None:
        if not self.alive:
            return
        self._heartbeat()
        pace_s = RETRY_S if self._exit is not None else self._heartbeat_s
        self._t.loop.after(pace_s * self._t.luck.rng.uniform(0.9, 1.1), self._keep_sending)

    def _say(self) -> None:
        """Report news at once, and again until a heartbeat with it was accepted."""
        self._news = True
        self._t.loop.after(0.5, self._heartbeat)

    def _heartbeat(self) -> None:
        if not self.alive or self.sending_since_s is None:
            return
        self._seq += 1
        message = self._now()
        self._t.webhook.heartbeat(message, lambda answer: self._answered(message, answer), cut=self._cut())

    def _now(self) -> Heartbeat:
        now_s, made = self._t.loop.now_s, self._made(self._t.loop.now_s)
        if made >= SLOW_AFTER_STEPS:
            self._slow_s = self._step_s
        return Heartbeat(
            run=self.run_id,
            attempt=self.attempt,
            identity=self.identity,
            seq=self._seq,
            phase=self.phase,
            step=self.base + made if made else 0,
            step_age_s=int(now_s - self.rose_s()) if self.begun_s is not None else 0,
            step_slow_s=self._slow_s,
            preempting=self._preempting,
            sick=self._sick,
            evidence=bool(self._evidence),
            uploaded_step=self._uploaded,
            upload_pending=self._flush_for is not None
            and self._flush_for.cause is Cause.FINISHED
            and self._exit is None,
            upload_problem="the bucket does not answer" if self._in_trouble(now_s) else "",
            news=self._news,
            exit=self._exit,
        )

    def _in_trouble(self, now_s: float) -> bool:
        """Return whether an upload has taken so long that people should be notified."""
        return self._upload_began_s is not None and now_s - self._upload_began_s > TROUBLE_S

    def _answered(self, message: Heartbeat, answer: LeaseReply | None) -> None:
        if not self.alive or answer is None:
            return
        if answer.outcome is Outcome.FENCED:
            self._fenced()
            return
        if answer.outcome is Outcome.REPEATED:
            self._seq += 1000
            return
        if message.exit is not None:
            self.over = True
            return
        if message.news:
            self._news = False
        if answer.order is Order.DRAIN:
            self._flush(Cause.STOPPED_GRACEFULLY)
        elif answer.order is Order.EVIDENCE and self._evidence is None:
            self._evidence = False
            self._t.loop.after(self._t.luck.rng.uniform(2, 20), self._gathered)

    def _gathered(self) -> None:
        self._evidence = True
        self._say()

"""The promises, held against the truth after every event.

The keeper knows what no control plane can: which machine really runs, whether a trainer really advances, what
was really committed. It never asks the core whether the core was right; it looks at what was written and
done.

1  Only the attempt that holds the lease is heard and can commit; commits rise; what is resumed is chosen
once, after the fence, is whole, and is never below a committed step. 2  A pod of an old attempt, or of an
ended run, is gone within `OLD_POD_GONE_S` of being known; a machine that is gone is seen to be within
`GONE_SEEN_S`. 3  bill <= budget + burn x (one sweep, `OVER_BUDGET_S`, and the time in which nothing could be
asked back). 4  A healthy run is never destroyed while it is heard, or while it could not be heard because
nobody could; a current pod is never taken back. 5  Nothing is destroyed when the provider did not answer, or
the canary while no other run is heard, nor without having told people, nor a stall without evidence. 6  Every
run ends, within `FINISH_S` of the last fault's start, and in the state that its true cause asks for: it has
succeeded only when the checkpoint of its last step is committed, and failed for want of it only when that was
lost or had cost what it may. 7  Every stop is told once, everything told arrives, and nothing is told or done
over and over. 8  An attempt asks for one pod, after the intent is saved. 9  Every move is in the table;
attempts and versions rise one by one; attempts without progress end at the limit; the ledger is the bill, but
for the time of the create call before it, `SETTLED_S` after it, and `STEP_S_MAX`. 10 Finished work is
finished: no machine is rented once the last step is durable.

Bounds are in *able* seconds: those in which a watcher was up, the provider could be asked and no call of the
last sweep had failed.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NoReturn, Protocol, TypeVar

from prime_train.buckets.keys import parse_pod_name, pod_name
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.budget import RESERVED_SHARE, training_s
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import (
    ACTIVE_STATES,
    TERMINAL,
    TRANSITIONS,
    Alert,
    Attempt,
    Change,
    DesiredState,
    DrainReason,
    Event,
    Run,
    RunState,
)
from prime_train.runs.store import LeaseReply, RunRecord
from prime_train.runs.wire import Commit, Heartbeat, Outcome
from prime_train.spec.causes import POLICY, Cause, Retry
from tests.simulation.agent import VirtualAgent
from tests.simulation.bucket import VirtualBucket
from tests.simulation.faults import Faults, unheard, within
from tests.simulation.loop import START_S, Loop
from tests.simulation.provider import END_S_MAX, Machine

SWEEP_S = 70
"""Longest time in seconds between two sweeps of a watcher."""
SKEW_S = 5
"""Tolerance in seconds of the store's time as read by a watcher: half of the duration of the response."""
HEARD_S = 180
"""Seconds within which heartbeats of other runs show that the webhook receives them, whatever its canary
reports.
"""
DISTURBED_S = SWEEP_S + 30
"""Seconds after a failed call until it is tried again."""
OLD_POD_GONE_S = SWEEP_S + END_S_MAX + 10
"""Able seconds within which a pod of an old attempt, or of an ended run, is gone after it could be known as
one.
"""
OVER_BUDGET_S = SWEEP_S + 2 * SKEW_S + 10
"""Able seconds after a bill passed its budget within which the termination of every known pod is requested:
one sweep.
"""
SETTLED_S = SWEEP_S + 20
"""Able seconds after the provider reports a past pod as gone within which the ledger stops counting it."""
GONE_SEEN_S = 150
"""Able seconds within which a lost machine is fenced."""
FINISH_S = 9000
"""Seconds after the last possible start of a fault within which every run is over, and every pod gone."""
STEP_S_MAX = 90
"""Longest time in seconds of a step's calls; what a step writes has the second at which the step began."""
ASKS_AT_ONCE_MAX = 6
ASK_AGAIN_S_MIN = 20
ALERT_GAP_S = 25
ALERTS_AN_ATTEMPT_MAX = 40
BUDGET_SHARE_MIN = 1 - RESERVED_SHARE - 0.01
"""Share of the dollars from which on a run may be ended for its budget: the rest is reserved for the last
save and for giving the machine back, or is a machine's that the provider had not reported as gone yet.
"""

LIVENESS = (Cause.SILENT, Cause.STALLED, Cause.START_TIMEOUT, Cause.BOOT_TIMEOUT, Cause.LAUNCH_LOST)
LOSSES = (Cause.PREEMPTED, Cause.MACHINE_LOST, Cause.BOOT_LOST)
Due = TypeVar("Due")
TOLD_OF = {Cause.SILENT: AlertKind.SILENT, Cause.BOOT_TIMEOUT: AlertKind.BOOT_LATE}


class Broken(BaseException):
    """A promise does not hold. Not an `Exception`, so that no code takes it for a failure of one run."""

    def __init__(self, number: int, promise: str, run_id: str, found: str) -> None:
        super().__init__(f"promise {number}, {promise}: {found}")
        self.number, self.run_id = number, run_id


@dataclass
class Sweeping:
    """What one watcher's sweep has observed so far."""

    listed: bool = False
    """Whether the provider's list was available to the current decision."""
    first_listed: bool | None = None
    run_id: str = ""
    sang: bool = False
    unlisted: frozenset[str] = frozenset()
    """Providers, of several, whose list was not available to the current decision."""
    first_unlisted: frozenset[str] = frozenset()
    tracked_s: dict[str, int] = field(default_factory=dict)
    """When the tracker last received a report of a run, as reported to this sweep."""

    def lists(self, *, answered: bool, unlisted: frozenset[str] = frozenset()) -> None:
        self.listed, self.unlisted = answered, unlisted
        if self.run_id == "":
            self.first_listed, self.first_unlisted = answered, unlisted

    def listens(self, *, sang: bool) -> None:
        """The canary was sent, with a list that is used for all following runs."""
        self.sang, self.first_listed, self.first_unlisted = sang, self.listed, self.unlisted

    def loads(self, run_id: str) -> None:
        """The next run is checked, with the sweep's one list."""
        if run_id != self.run_id and self.first_listed is not None:
            self.listed, self.unlisted = self.first_listed, self.first_unlisted
        self.run_id = run_id


@dataclass
class Truth:
    """The true state of one run."""

    run: Run
    steps: int
    acked: int = 0
    acked_attempt: int = 0
    acked_at_fence: int = 0
    received_s: float = 0.0
    heard_of: tuple[int, int] = (0, 0)
    """Attempt and sequence number of the last accepted heartbeat."""
    strikes: int = 0
    requested: set[DesiredState] = field(default_factory=set)
    ailments: dict[int, set[Cause | None]] = field(default_factory=lambda: defaultdict(set))
    agents: dict[int, VirtualAgent] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """The keys of all alerts."""
    told_s: dict[tuple[int, str, str], float] = field(default_factory=dict)
    """When people were last notified of that kind in that attempt and state."""
    alerts_of: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    machines: list[Machine] = field(default_factory=list)
    over_s: dict[str, float] = field(default_factory=dict)
    """Able seconds for which a pod's termination was not requested after the bill had passed the budget."""
    crosses_s: float | None = None

    @property
    def holds(self) -> int | None:
        """Return the attempt that may send heartbeats and commit."""
        return self.run.attempt if self.run.state in ACTIVE_STATES else None


class Machines(Protocol):
    """The truth about the machines of one provider, or of several."""

    by_id: dict[str, Machine]

    @property
    def living(self) -> list[Machine]: ...


class Keeper:
    """The checker of promises. `each` is called after every event, the other methods for the events that they
    are named after.
    """

    def __init__(self, loop: Loop, faults: Faults, pods: Machines, bucket: VirtualBucket) -> None:
        self._loop, self._faults, self._pods, self._bucket = loop, faults, pods, bucket
        self.runs: dict[str, Truth] = {}
        self.sent: set[str] = set()
        self.fences = 0
        self._names: set[str] = set()
        self._checked_s = loop.now_s
        self._disturbed_s = 0.0
        self._able_s = 0.0
        self._waits_for: Truth | None = None
        """A run that was not over at the last check whether all are."""
        self._stale: set[str] = set()
        """Runs that have changed since they were last checked."""
        self._told_since: dict[str, float] = {}
        """The able second in which a list first had the machine."""
        self._recorded: set[str] = set()
        """Machines that an attempt has recorded as its own."""
        self._crosses_s = math.inf
        """The first second at which a bill passes its budget."""
        self._wrong: dict[str, float] = {}
        self._lost: dict[str, float] = {}
        self._unsettled: dict[tuple[str, int], float] = {}

    # --------------------------------------------------------------------------------------------------------
    # each event

    def each(self) -> None:
        now_s = self._loop.now_s
        passed_s = self._able_since(now_s)
        if self._stale:
            self._look(now_s)
        self._late(self._wrong, OLD_POD_GONE_S, 2, "an old pod goes", "is still there")
        self._late(
            self._lost, GONE_SEEN_S, 2, "a machine that is gone is seen to be gone", "is not fenced off"
        )
        for (run_id, attempt), since_s in self._unsettled.items():
            if self._able_s - since_s > SETTLED_S:
                self._broken(9, "the ledger ends with the pod", run_id, f"attempt {attempt} is still counted")
        if passed_s and now_s >= self._crosses_s:
            for run_id, truth in self.runs.items():
                if truth.crosses_s is not None and now_s >= truth.crosses_s:
                    self._over_budget(run_id, truth, passed_s)

    def disturbed(self, seconds: float = 0.0) -> None:
        """A call failed, or a watcher died: what it was about to do is done in the next sweep."""
        self._disturbed_s = max(self._disturbed_s, self._loop.now_s + seconds + DISTURBED_S)

    def changed(self, machine: Machine) -> None:
        truth = self.runs[machine.run_id]
        if machine not in truth.machines:
            truth.machines.append(machine)
        if machine.reported:
            since_s = self._told_since.setdefault(machine.pod_id, self._able_s)
            # A list had it, and it was gone before any watcher was able to do anything about it: nobody could
            # count it either.
            if (
                machine.gone_s is not None
                and machine.pod_id not in self._recorded
                and self._able_s - since_s <= OVER_BUDGET_S
            ):
                machine.reported = False
        self._stale.add(machine.run_id)

    def _able_since(self, now_s: float) -> float:
        """Return the able seconds since the last event."""
        before_s, self._checked_s = self._checked_s, now_s
        faults = self._faults
        if (faults.provider_down and within(faults.provider_down, now_s)) or self._is_unwatched(now_s):
            self.disturbed()
        start_s = max(before_s, self._disturbed_s)
        passed_s = max(0.0, now_s - start_s)
        self._able_s += passed_s
        return passed_s

    def _is_unwatched(self, now_s: float) -> bool:
        down = self._faults.watchers_down
        return within(self._faults.asleep, now_s) or (
            all(down) and all(within(windows, now_s) for windows in down)
        )

    def _late(self, since: dict[str, float], bound_s: float, number: int, promise: str, found: str) -> None:
        for pod_id, since_s in since.items():
            if self._able_s - since_s > bound_s:
                machine = self._pods.by_id[pod_id]
                self._broken(
                    number,
                    promise,
                    machine.run_id,
                    f"{pod_id} ({machine.name}) {found} after {bound_s} able seconds",
                )

    def _over_budget(self, run_id: str, truth: Truth, passed_s: float) -> None:
        for machine in truth.machines:
            if machine.gone_s is None and machine.requested_s is None and self._known(machine):
                over_s = truth.over_s[machine.pod_id] = truth.over_s.get(machine.pod_id, 0.0) + passed_s
                if over_s > OVER_BUDGET_S:
                    usd = self.bill_usd(truth)
                    self._broken(
                        3,
                        "spend stays within the budget",
                        run_id,
                        f"${usd:.2f} of ${truth.run.spec.budget.usd:.2f} are billed",
                    )

    def _look(self, now_s: float) -> None:
        """Compute from the truth again what is due for an end or a check; what was due before keeps its
        time.
        """
        for run_id in self._stale:
            truth = self.runs[run_id]
            truth.crosses_s = self._crosses_s_of(truth, now_s)
            for machine in truth.machines:
                wrong = machine.gone_s is None and not self._is_current(machine) and self._known(machine)
                self._keep(self._wrong, machine.pod_id, due=wrong)
            for attempt in truth.run.attempts:
                gone = (
                    attempt.pod_id is not None
                    and attempt.ended_s is None
                    and self._pods.by_id[attempt.pod_id].gone_s is not None
                )
                record = attempt.number == truth.holds
                self._keep(self._unsettled, (run_id, attempt.number), due=gone and not record)
                if attempt.pod_id is not None:
                    self._keep(
                        self._lost,
                        attempt.pod_id,
                        due=gone and record and self._is_dead(self._pods.by_id[attempt.pod_id], truth),
                    )
        self._stale.clear()
        self._crosses_s = min(
            (truth.crosses_s for truth in self.runs.values() if truth.crosses_s is not None), default=math.inf
        )

    def _keep(self, since: dict[Due, float], due_of: Due, *, due: bool) -> None:
        if due:
            since.setdefault(due_of, self._able_s)
        else:
            since.pop(due_of, None)

    def _is_dead(self, machine: Machine, truth: Truth) -> bool:
        tracked = truth.run.spec.wandb is not None
        return machine.gone_s is not None and machine.dies_s == machine.gone_s and not tracked

    def _is_current(self, machine: Machine) -> bool:
        truth = self.runs[machine.run_id]
        attempt = truth.run.current_attempt
        return (
            truth.holds == machine.attempt
            and attempt is not None
            and attempt.pod_id in (None, machine.pod_id)
        )

    def _known(self, machine: Machine) -> bool:
        return machine.reported or machine.listed_s <= self._loop.now_s

    # --------------------------------------------------------------------------------------------------------
    # money

    def bill_usd(self, truth: Truth) -> float:
        """Return the provider's bill for the pods that a watcher could know of."""
        return sum(
            m.paid_s(self._loop.now_s) * m.usd_per_hour / 3600
            for m in truth.machines
            if m.reported or (m.gone_s is None and self._known(m))
        )

    def _crosses_s_of(self, truth: Truth, now_s: float) -> float | None:
        burn = sum(m.usd_per_hour for m in truth.machines if m.gone_s is None and self._known(m)) / 3600
        left = truth.run.spec.budget.usd - self.bill_usd(truth)
        if left <= 0:
            return now_s if burn else None
        truth.over_s.clear()
        return now_s + left / burn if burn else None

    # --------------------------------------------------------------------------------------------------------
    # the wire

    def received(self, heartbeat: Heartbeat) -> None:
        truth = self.runs[heartbeat.run]
        if truth.holds != heartbeat.attempt:
            self._broken(
                1,
                "only the current attempt is heard",
                heartbeat.run,
                f"a heartbeat of attempt {heartbeat.attempt} was accepted",
            )
        if truth.heard_of[0] == heartbeat.attempt and heartbeat.seq <= truth.heard_of[1]:
            self._broken(
                1,
                "heartbeats rise",
                heartbeat.run,
                f"heartbeat {heartbeat.seq} was accepted after heartbeat {truth.heard_of[1]}",
            )
        truth.received_s, truth.heard_of = self._loop.now_s, (heartbeat.attempt, heartbeat.seq)

    def committed(self, commit: Commit, answer: LeaseReply) -> None:
        truth = self.runs[commit.run]
        if answer.outcome is Outcome.FENCED:
            return
        if truth.holds != commit.attempt:
            self._broken(
                1,
                "at most one attempt can commit",
                commit.run,
                f"attempt {commit.attempt} committed step {commit.step}",
            )
        if answer.outcome is Outcome.OK:
            if commit.step <= truth.acked:
                self._broken(
                    1,
                    "commits rise",
                    commit.run,
                    f"step {commit.step} was committed after step {truth.acked}",
                )
            truth.acked, truth.acked_attempt = commit.step, commit.attempt

    def restored(self, run_id: str, attempt: int, resume: ResumePoint | None) -> None:
        truth = self.runs[run_id]
        step = resume.step if resume else 0
        if truth.holds == attempt and step < truth.acked and truth.acked_attempt < attempt:
            self._broken(
                1,
                "no durable step is lost",
                run_id,
                f"attempt {attempt} restores step {step}, step {truth.acked} was committed",
            )
        if resume is not None and truth.holds == attempt and not self._bucket.is_complete(resume.key):
            self._broken(1, "what is restored is whole", run_id, f"attempt {attempt} restores {resume.key}")

    # --------------------------------------------------------------------------------------------------------
    # the pods

    def created(self, name: str) -> None:
        named = parse_pod_name(name)
        assert named is not None
        run_id, attempt = named
        truth = self.runs[run_id]
        if name in self._names:
            self._broken(8, "one pod an attempt", run_id, f"{name} is asked for twice")
        if truth.run.attempt < attempt:
            self._broken(8, "intent before action", run_id, f"{name} is asked for before it is saved")
        self._names.add(name)

    def terminating(self, machine: Machine) -> None:
        if self._is_current(machine):
            self._broken(
                4,
                "a current pod is never taken back",
                machine.run_id,
                f"{machine.pod_id} ({machine.name}) is asked back",
            )
        machine.first_ask_s = machine.first_ask_s or self._loop.now_s
        machine.asks += 1
        if machine.asks > ASKS_AT_ONCE_MAX + (self._loop.now_s - machine.first_ask_s) / ASK_AGAIN_S_MIN:
            self._broken(
                7,
                "nothing is done over and over",
                machine.run_id,
                f"{machine.pod_id} is asked back for the {machine.asks}th time",
            )

    # --------------------------------------------------------------------------------------------------------
    # the store

    def saved(self, old: RunRecord, change: Change, sweeping: Sweeping | None) -> None:
        """A change was written over `old`."""
        new = change.run
        truth = self.runs[new.run_id]
        truth.run = new
        self._stale.add(new.run_id)
        newest = new.current_attempt
        if newest is not None and newest.pod_id is not None:
            self._recorded.add(newest.pod_id)
            self._pods.by_id[newest.pod_id].reported = True
        if new.version != old.run.version + 1:
            self._broken(9, "one version a change", new.run_id, f"{old.run.version} became {new.version}")
        if new.state is not old.run.state:
            self._moved(truth, old, change, sweeping)
        if new.attempt != old.run.attempt:
            self._launched(truth, old.run)
        if new.resume != old.run.resume:
            self._chosen(old.run, new)
        self._alerted(truth, old.run, change)

    def _moved(self, truth: Truth, old: RunRecord, change: Change, sweeping: Sweeping | None) -> None:
        new = change.run
        if not any(TRANSITIONS.get((old.run.state, event)) is new.state for event in Event):
            self._broken(
                9, "every move is in the table", new.run_id, f"{old.run.state.value} became {new.state.value}"
            )
        if old.run.state in ACTIVE_STATES and new.state not in ACTIVE_STATES:
            self._fenced(truth, old, new, sweeping)
        if new.state is RunState.DRAINING:
            self._stopped_gracefully(truth, new)
        if new.state in TERMINAL:
            self._ended(truth, old, new)
        if old.run.state in TERMINAL:
            truth.strikes = 0
            truth.requested.clear()

    def _launched(self, truth: Truth, old: Run) -> None:
        new = truth.run
        if (
            new.attempt != old.attempt + 1
            or old.state is not RunState.QUEUED
            or new.state is not RunState.LAUNCHING
        ):
            self._broken(
                9,
                "attempts rise one by one",
                new.run_id,
                f"{old.attempt} ({old.state.value}) became {new.attempt} ({new.state.value})",
            )
        step = new.resume.step if new.resume else 0
        if step < truth.acked:
            self._broken(
                1,
                "no durable step is lost",
                new.run_id,
                f"attempt {new.attempt} resumes from {step}, {truth.acked} was committed",
            )
        if (
            truth.steps == step == new.spec.trainer.steps
            and old.attempts
            and old.attempts[-1].cause in (*LOSSES, Cause.SILENT, Cause.STALLED)
        ):
            self._broken(
                10,
                "finished work is finished",
                new.run_id,
                f"attempt {new.attempt} is rented, and step {step} is the last",
            )
        if truth.strikes >= new.spec.budget.restarts_without_progress:
            self._broken(
                9,
                "restarts without progress end",
                new.run_id,
                f"{truth.strikes} attempts in a row made no checkpoint",
            )
        truth.received_s = 0.0

    def _chosen(self, old: Run, new: Run) -> None:
        point = new.resume
        if point is None or (old.resume is not None and point.step < old.resume.step):
            self._broken(1, "the resume point never goes back", new.run_id, f"{old.resume} became {point}")
        if old.state is not RunState.QUEUED or old.resume_chosen or point.attempt != new.attempt:
            self._broken(
                1,
                "what is resumed is chosen once, after the fence",
                new.run_id,
                f"{point} in attempt {new.attempt}, {old.state.value}",
            )
        if not self._bucket.is_complete(point.key):
            self._broken(1, "what is resumed is whole", new.run_id, f"{point.key} is not")
        truth = self.runs[new.run_id]
        if point.step > max(truth.acked_at_fence, old.durable_step):
            truth.strikes = 0

    def _alerted(self, truth: Truth, old: Run, change: Change) -> None:
        new, now_s = change.run, self._loop.now_s
        if old.state in TERMINAL and new.state not in TERMINAL:
            truth.told_s.clear()  # a person let it go on, and is told again how that ends
        ends = [alert for alert in change.alerts if alert.kind.value in {state.value for state in TERMINAL}]
        wanted = 1 if new.state in TERMINAL and old.state not in TERMINAL else 0
        if len(ends) != wanted or any(alert.kind.value != new.state.value for alert in ends):
            self._broken(
                7,
                "every stop is told once",
                new.run_id,
                f"{len(ends)} alerts for {old.state.value} to {new.state.value}",
            )
        for alert in change.alerts:
            kind = (alert.attempt, alert.kind, new.state.value)
            if alert.key in truth.keys or now_s - truth.told_s.get(kind, 0.0) < ALERT_GAP_S:
                self._broken(
                    7,
                    "nobody is told twice",
                    new.run_id,
                    f"{alert.key} follows another within {ALERT_GAP_S} s",
                )
            truth.keys.add(alert.key)
            truth.told_s[kind] = now_s
            truth.alerts_of[alert.attempt] += 1
            if truth.alerts_of[alert.attempt] > ALERTS_AN_ATTEMPT_MAX:
                self._broken(
                    7,
                    "no storm of alerts",
                    new.run_id,
                    f"{ALERTS_AN_ATTEMPT_MAX} in attempt {alert.attempt}, the last is {alert.key}",
                )

    def delivered(self, alert: Alert) -> None:
        self.sent.add(alert.key)

    # -------------------------------------------------------------------------------------------------------
    # fences and ends

    def _fenced(self, truth: Truth, old: RunRecord, new: Run, sweeping: Sweeping | None) -> None:
        self.fences += 1
        attempt = new.attempts[-1]
        if sweeping is None:
            self._broken(
                5, "only a watcher fences", new.run_id, f"attempt {attempt.number} was fenced by nobody"
            )
        reported = old.lease.heartbeat is not None and (
            old.lease.heartbeat.exit is not None or old.lease.heartbeat.sick is not None
        )
        ordered, keeps = old.run.state is RunState.DRAINING, old.run.state is RunState.UPLOADING
        if attempt.cause in LIVENESS or (attempt.cause in LOSSES and not reported and not ordered):
            self._doubted(truth, old, attempt, sweeping)
        elif (
            reported
            and attempt.cause is not None
            and not ordered
            and not (keeps and attempt.cause is Cause.UPLOAD_FAILED)
        ):
            self._reported(truth, attempt)
        self._count(truth, attempt)

    def _doubted(self, truth: Truth, record: RunRecord, attempt: Attempt, sweeping: Sweeping) -> None:
        """Check that a conclusion from missing heartbeats or a missing pod was sound."""
        old, run_id, cause = record.run, record.run.run_id, attempt.cause
        assert cause is not None
        if not sweeping.listed or attempt.offer.provider in sweeping.unlisted:
            self._broken(
                5,
                "no machine is terminated on Unknown",
                run_id,
                f"{cause.value}, though the provider did not answer",
            )
        if (
            cause in (Cause.SILENT, Cause.BOOT_TIMEOUT)
            and not sweeping.sang
            and not self._hears_others(run_id)
        ):
            self._broken(
                5,
                "no machine is terminated on Unknown",
                run_id,
                f"{cause.value}, though nobody was heard, the canary neither",
            )
        kind = TOLD_OF.get(cause)
        if kind is not None and old.noted_s(kind) is None:
            self._broken(
                5,
                "people are told before a silent machine is replaced",
                run_id,
                f"{cause.value} without a word",
            )
        if cause in (Cause.STALLED, Cause.START_TIMEOUT) and not self._is_looked_into(record, attempt):
            self._broken(
                5,
                "evidence first, then a stalled machine is replaced",
                run_id,
                f"{cause.value} without having asked",
            )
        machine = self._pods.by_id.get(attempt.pod_id or "")
        if machine is None:
            return
        if cause in LOSSES and machine.gone_s is None:
            self._broken(
                4, "a healthy run is never destroyed", run_id, f"{cause.value}, but {machine.pod_id} is there"
            )
        agent = truth.agents.get(attempt.number)
        if (
            machine.gone_s is None
            and agent is not None
            and agent.advancing
            and not self._sound(truth, old, attempt, sweeping)
        ):
            self._broken(
                4,
                "a healthy run is never destroyed",
                run_id,
                f"{cause.value}, but {machine.pod_id} is at step {agent.step_now()}",
            )

    def _hears_others(self, run_id: str) -> bool:
        return any(
            other.received_s >= self._loop.now_s - HEARD_S
            for other_id, other in self.runs.items()
            if other_id != run_id
        )

    def _is_looked_into(self, record: RunRecord, attempt: Attempt) -> bool:
        """Return whether evidence was requested since the step last rose, as far as it was reported, and
        there was time to give it.
        """
        heartbeat, requested_s = record.lease.heartbeat, attempt.evidence_requested_s
        if heartbeat is None or record.lease.heartbeat_s is None or requested_s is None:
            return False
        rose_s = record.lease.heartbeat_s - heartbeat.step_age_s if attempt.cause is Cause.STALLED else 0
        return (
            requested_s >= rose_s
            and record.lease.heartbeat_s > requested_s - SWEEP_S
            and self._loop.now_s > requested_s - SKEW_S
        )

    def _sound(self, truth: Truth, old: Run, attempt: Attempt, sweeping: Sweeping) -> bool:
        """Return whether the heartbeats of a healthy agent had been missing for long enough, in time in which
        they could have been received.
        """
        health, now_s, cause, launched_s = (
            old.spec.health,
            self._loop.now_s,
            attempt.cause,
            attempt.launched_s,
        )
        saved_s = old.current_attempt.last_sign_s if old.current_attempt is not None else None
        tracked_s = max(sweeping.tracked_s.get(old.run_id, 0), saved_s or 0)
        if now_s - tracked_s < health.silence_s - 2 * SKEW_S:
            return False
        if cause is Cause.SILENT:
            return self._unheard_s(truth.received_s) >= health.silence_s - 2 * SKEW_S
        if cause is Cause.BOOT_TIMEOUT:
            return (
                truth.received_s == 0 and self._unheard_s(launched_s) >= health.first_heartbeat_s - 2 * SKEW_S
            )
        return False

    def _unheard_s(self, since_s: float) -> float:
        """Return the longest time since then in which the webhook was up without a break."""
        marks, now_s = [max(since_s, START_S)], self._loop.now_s
        longest_s = 0.0
        for window in sorted(unheard(self._faults), key=lambda w: w.start_s):
            if window.end_s > marks[-1] and window.start_s < now_s:
                longest_s = max(longest_s, window.start_s - marks[-1])
                marks.append(window.end_s)
        return max(longest_s, now_s - marks[-1])

    def _reported(self, truth: Truth, attempt: Attempt) -> None:
        known = {
            *truth.ailments[attempt.number],
            Cause.FINISHED,
            Cause.STOPPED_GRACEFULLY,
            Cause.PREEMPTED,
            Cause.HOURS_SPENT,
            Cause.BUDGET_SPENT,
        }
        if attempt.cause not in known:
            self._broken(
                6,
                "the cause is the true one",
                truth.run.run_id,
                f"{attempt.cause}, but it was one of {known}",
            )

    def _count(self, truth: Truth, attempt: Attempt) -> None:
        gained = truth.acked > truth.acked_at_fence
        truth.acked_at_fence = truth.acked
        if gained:
            truth.strikes = 0
        elif attempt.cause is not None and POLICY[attempt.cause].retry is Retry.COUNTED:
            truth.strikes += 1

    def _stopped_gracefully(self, truth: Truth, new: Run) -> None:
        agent = truth.agents.get(new.attempt)
        if new.drain is DrainReason.PREEMPTION and (agent is None or not agent.warned):
            self._broken(
                4,
                "a healthy run is never destroyed",
                new.run_id,
                "stopped gracefully for a preemption nobody announced",
            )
        if new.drain in (DrainReason.BUDGET, DrainReason.HOURS) and not self._is_spent(new):
            self._broken(
                4,
                "a healthy run is never destroyed",
                new.run_id,
                "stopped gracefully for a budget that is not spent",
            )
        if new.drain is DrainReason.USER and DesiredState.STOP not in truth.requested:
            self._broken(
                4, "a healthy run is never destroyed", new.run_id, "stopped gracefully, but nobody asked"
            )

    def _is_spent(self, run: Run) -> bool:
        now_s, hours = int(self._loop.now_s) + SKEW_S, run.spec.budget.hours
        spent = ledger.spent(run, now_s)
        trained = hours is not None and training_s(run, now_s) >= hours * 3600 - 2 * SKEW_S
        return spent.usd >= run.spec.budget.usd * BUDGET_SHARE_MIN or trained

    def _is_nearly_spent(self, truth: Truth, run: Run) -> bool:
        """Return whether the dollars are spent by the limit that its agent was told when other machines were
        still paid for.
        """
        agent = truth.agents.get(run.attempt)
        spent_usd = ledger.spent(run, int(self._loop.now_s) + SKEW_S).usd
        return agent is not None and spent_usd + agent.early_usd >= run.spec.budget.usd * BUDGET_SHARE_MIN

    def _ended(self, truth: Truth, old: RunRecord, new: Run) -> None:
        why = f"{new.state.value} by {new.cause.value if new.cause else 'nobody'}: {new.why}"
        if not self._is_due(truth, old.run, new):
            self._broken(6, "every run ends as it should", new.run_id, why)

    def _is_due(self, truth: Truth, old: Run, new: Run) -> bool:
        ailments = {cause for causes in truth.ailments.values() for cause in causes}
        match new.state:
            case RunState.SUCCEEDED:
                complete = max(truth.acked, new.resume.step if new.resume else 0) == truth.steps
                return complete or (
                    new.spec.trainer.steps is None and Cause.STOPPED_EARLY in truth.ailments[new.attempt]
                )
            case RunState.CANCELLED:
                return DesiredState.CANCEL in truth.requested
            case RunState.FAILED if old.state is RunState.UPLOADING and new.cause is Cause.UPLOAD_FAILED:
                return Cause.UPLOAD_FAILED in ailments or self._is_kept_long_enough(truth, new)
            case RunState.FAILED:
                return (
                    new.cause in ailments and new.cause is not None and POLICY[new.cause].retry is Retry.NEVER
                )
            case _:
                struck = (
                    truth.strikes >= new.spec.budget.restarts_without_progress
                    and old.state is RunState.QUEUED
                )
                spent = new.cause in (Cause.BUDGET_SPENT, Cause.HOURS_SPENT, None) and (
                    self._is_spent(new) or self._is_spent(old)
                )
                # The agent's own limit was told to it when launches that came to nothing were still counted.
                spent = spent or (new.cause is Cause.HOURS_SPENT and new.spec.budget.hours is not None)
                spent = spent or (new.cause is Cause.BUDGET_SPENT and self._is_nearly_spent(truth, new))
                return (
                    struck
                    or spent
                    or DesiredState.STOP in truth.requested
                    or (new.cause in ailments and new.cause is not None)
                )

    def _is_kept_long_enough(self, truth: Truth, run: Run) -> bool:
        """Return whether the machine with the only copy has cost what it may while the copy is not durable,
        or all the money is spent.
        """
        attempt = run.current_attempt
        assert attempt is not None
        kept_s = self._loop.now_s - (attempt.uploading_s or math.inf) + SKEW_S * 2
        limit_usd = run.spec.budget.upload_usd or run.spec.budget.usd * 0.1
        return kept_s * attempt.offer.usd_per_hour / 3600 >= limit_usd or self._is_spent(run)

    def deleting(self, key: str) -> None:
        """The control plane deletes chunks that no manifest lists, of runs that are over."""
        if "/blobs/" not in key:
            return
        run_id = key.split("/")[1]
        if self.runs[run_id].run.state not in TERMINAL or any(
            key in m.blobs() for m in self._bucket.manifests(run_id)
        ):
            self._broken(1, "nothing that a checkpoint needs is deleted", run_id, key)

    # --------------------------------------------------------------------------------------------------------
    # the end

    def is_done(self) -> bool:
        """Return whether nothing is left to do."""
        if self._waits_for is not None and not _is_over(self._waits_for.run):
            return False
        self._waits_for = next((truth for truth in self.runs.values() if not _is_over(truth.run)), None)
        over = self._waits_for is None
        return over and not self._pods.living and all(truth.keys <= self.sent for truth in self.runs.values())

    def at_the_end(self) -> None:
        """Check what can only be checked when everything is over, or should be."""
        for run_id, truth in self.runs.items():
            run = truth.run
            if run.state not in TERMINAL:
                self._broken(
                    6, "every run ends", run_id, f"{FINISH_S} s after the last fault it is {run.state.value}"
                )
            unsent = sorted(truth.keys - self.sent)
            if unsent:
                self._broken(7, "what is told arrives", run_id, f"{unsent} did not")
            if not _is_over(run) or any(a.ended_s is None for a in run.attempts):
                self._broken(9, "the ledger closes", run_id, "an attempt is not settled")
            self._same_bill(truth)

    def _same_bill(self, truth: Truth) -> None:
        """Check that ledger and provider agree, except for the seconds between intent and create, and between
        the end and its observation.
        """
        run = truth.run
        by_name = {machine.name: machine for machine in truth.machines if machine.reported}
        for attempt in run.attempts:
            machine = by_name.pop(pod_name(run.run_id, attempt.number, attempt.identity), None)
            if machine is None or (attempt.pod_id is None and machine.requested_s is None):
                continue  # taken away before anybody could write it down
            assert machine.gone_s is not None
            short = attempt.ended_s is None or attempt.ended_s < machine.gone_s - STEP_S_MAX
            early = attempt.launched_s > machine.created_s + 2 * SKEW_S
            if attempt.pod_id != machine.pod_id or short or early:
                self._broken(9, "the ledger is the bill", run.run_id, f"{attempt} for {machine}")
        if by_name and not run.folded.attempts:
            self._broken(9, "the ledger is the bill", run.run_id, f"{sorted(by_name)} are in no ledger")

    def _broken(self, number: int, promise: str, run_id: str, found: str) -> NoReturn:
        raise Broken(number, promise, run_id, found)


def _is_over(run: Run) -> bool:
    """Return whether nothing is left except the later clean-up of the bucket."""
    rests = run.next_check_s is None or run.cleanup_s is not None
    return run.state in TERMINAL and rests and all(a.ended_s is not None for a in run.attempts)

"""A run and its attempts, and the table of legal state transitions.

A run consists of two records. `Run` changes seldom and is saved with compare-and-set on `version`. `Lease`
changes with every heartbeat; it holds the fencing token (`attempt`, and whether it is still `open`) together
with the last heartbeat and the last commit, so that "is this attempt the current one" and "may it commit" are
one condition of one write.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from pydantic import AliasChoices, Field

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.forecast import NO_FORECAST, Forecast
from prime_train.runs.offer import Offer
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Deletions, Heartbeat, Order, Traffic
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec

ATTEMPTS_KEPT_MAX = 64
"""Number of attempts that a run lists; older ones are merged into its totals, so that the record stays
small.
"""
CHECK_S_MAX = 900
"""The longest time between two checks of a run that is not over, in seconds. A run whose `next_check_s` is
further ahead is due at once.
"""
NO_TRAFFIC = Traffic()
NO_DELETIONS = Deletions()


class RunState(StrEnum):
    QUEUED = "queued"
    LAUNCHING = "launching"
    BOOTING = "booting"
    STARTING = "starting"
    TRAINING = "training"
    DRAINING = "draining"
    UPLOADING = "uploading"
    """The trainer has exited successfully, and its last checkpoint or its outputs are not durable yet: its
    machine has the only copy.
    """
    FINISHING = "finishing"
    """Training has succeeded, and the steps under `after` are run."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STOPPED = "stopped"


class Event(StrEnum):
    LAUNCH = "launch"
    POD_CREATED = "pod_created"
    FIRST_HEARTBEAT = "first_heartbeat"
    FIRST_STEP = "first_step"
    DRAIN = "drain"
    UPLOAD = "upload"
    FINISH = "finish"
    LOST = "lost"
    SUCCEED = "succeed"
    FAIL = "fail"
    STOP = "stop"
    CANCEL = "cancel"
    RESUME = "resume"


TERMINAL = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.STOPPED})
ACTIVE_STATES = frozenset(
    {
        RunState.LAUNCHING,
        RunState.BOOTING,
        RunState.STARTING,
        RunState.TRAINING,
        RunState.DRAINING,
        RunState.UPLOADING,
        RunState.FINISHING,
    }
)
"""States with an attempt whose lease is open."""

_S, _E = RunState, Event
TRANSITIONS: dict[tuple[RunState, Event], RunState] = {
    (_S.QUEUED, _E.LAUNCH): _S.LAUNCHING,
    (_S.LAUNCHING, _E.POD_CREATED): _S.BOOTING,
    (_S.BOOTING, _E.FIRST_HEARTBEAT): _S.STARTING,
    (_S.STARTING, _E.FIRST_STEP): _S.TRAINING,
    (_S.STARTING, _E.DRAIN): _S.DRAINING,
    (_S.TRAINING, _E.DRAIN): _S.DRAINING,
    (_S.UPLOADING, _E.DRAIN): _S.DRAINING,
    (_S.FINISHING, _E.DRAIN): _S.DRAINING,
    (_S.STARTING, _E.UPLOAD): _S.UPLOADING,
    (_S.TRAINING, _E.UPLOAD): _S.UPLOADING,
    (_S.FINISHING, _E.UPLOAD): _S.UPLOADING,
    (_S.STARTING, _E.FINISH): _S.FINISHING,
    (_S.TRAINING, _E.FINISH): _S.FINISHING,
    (_S.UPLOADING, _E.FINISH): _S.FINISHING,
    (_S.QUEUED, _E.SUCCEED): _S.SUCCEEDED,
    (_S.STARTING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.TRAINING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.DRAINING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.UPLOADING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.FINISHING, _E.SUCCEED): _S.SUCCEEDED,
    **{(state, _E.LOST): _S.QUEUED for state in ACTIVE_STATES},
    **{(state, _E.FAIL): _S.FAILED for state in ACTIVE_STATES | {_S.QUEUED}},
    **{(state, _E.STOP): _S.STOPPED for state in ACTIVE_STATES | {_S.QUEUED}},
    **{(state, _E.CANCEL): _S.CANCELLED for state in ACTIVE_STATES | {_S.QUEUED}},
    (_S.FAILED, _E.RESUME): _S.QUEUED,
    (_S.STOPPED, _E.RESUME): _S.QUEUED,
    (_S.CANCELLED, _E.RESUME): _S.QUEUED,
}


class IllegalMove(Exception):
    """An event that the table does not allow in this state: a bug of prime-train, or a request of the user
    that comes too late.
    """

    def __init__(self, run_id: str, state: RunState, event: Event) -> None:
        allowed = ", ".join(sorted(e.value for s, e in TRANSITIONS if s is state)) or "nothing"
        super().__init__(
            f"run {run_id} is {state.value}: {event.value} is not possible in this state; possible: {allowed}"
        )
        self.run_id, self.state, self.event = run_id, state, event


class DrainReason(StrEnum):
    USER = "user"
    BUDGET = "budget"
    HOURS = "hours"
    DEADLINE = "deadline"
    PREEMPTION = "preemption"
    FUNDS = "funds"
    MOVE = "move"


class DesiredState(StrEnum):
    """The state that the user last requested."""

    RUN = "run"
    STOP = "stop"
    CANCEL = "cancel"


@dataclass(frozen=True)
class TrackedStep:
    """The highest step in the tracker's reports while no heartbeats arrived, and when it last rose; None: not
    since its first report.
    """

    step: int
    rose_s: int | None = None


@dataclass(frozen=True)
class Attempt:
    """The time during which one machine is rented for a run. Times are whole seconds of the control plane's
    clock; None: it has not happened.
    """

    number: int
    offer: Offer
    launched_s: int
    pod_id: str | None = None
    created_s: int | None = None
    """When the provider created the machine, by its own report, from which on it is paid; None: not reported,
    `launched_s` counts.
    """
    agent_put_s: int | None = None
    first_heartbeat_s: int | None = None
    first_step_s: int | None = None
    last_sign_s: int | None = None
    """Last sign of life: the last heartbeat, or if it stalled the last step; before the fence also the
    tracker's last report.
    """
    tracked: TrackedStep | None = None
    resumed_step: int = 0
    resumed_attempt: int | None = None
    """The attempt that wrote the checkpoint of `resumed_step`; None: it started from step 0, or older stores,
    which do not say it.
    """
    not_finite_since: int | None = None
    """The step from which on no reported loss was finite when the attempt ended; None: the last one was, or
    it is unknown.
    """
    best_step_before: int = 0
    """Highest step of all earlier attempts. Steps up to it count as recomputed."""
    last_step: int = 0
    durable_step: int = 0
    timed_steps: int = 0
    """Number of steps after its first one, as its agent reported it; 0: none, or not reported."""
    timed_s: float = 0.0
    """Seconds in which these were made, saves included."""
    timed_spread_s: float = 0.0
    """Standard deviation of these steps in seconds; 0: not known."""
    gpu_peak_mib: float | None = None
    """The most memory in MiB that was in use on one of its GPUs; None: not known."""
    gpu_mib: float | None = None
    """All memory of that GPU in MiB; None: not known."""
    traffic: Traffic = NO_TRAFFIC
    """What its machine has received and sent, as its agent last reported it; without seconds: not known."""
    deleted: Deletions = NO_DELETIONS
    """What its agent has deleted, as far as it is in the history."""
    evidence_requested_s: int | None = None
    uploading_s: int | None = None
    """The second since which the machine is kept only because it has the only copy of the last checkpoint or
    of outputs.
    """
    after_s: int | None = None
    """The second since which the steps under `after` are run; None: not yet."""
    fenced_s: int | None = None
    cause: Cause | None = None
    detail: str = ""
    terminate_requested_s: int | None = None
    ended_s: int | None = None
    """When the pod ended by the provider's report, or else when the end was confirmed; the pod is paid for
    until then.
    """
    billed_usd: float | None = None
    """Total cost by the provider's bill; None: not billed (yet), the price of the offer counts."""
    identity: str = ""
    """Random identity, which distinguishes two attempts with the same number: after a store was restored from
    an older copy, a number may be given twice.
    """
    variant: str = ""
    """The variant of the config that its machine got, in words; empty if the config has none."""


@dataclass(frozen=True)
class Totals:
    """Total cost of attempts, in seconds and dollars."""

    attempts: int = 0
    paid_s: int = 0
    provision_s: int = 0
    restore_s: int = 0
    useful_s: int = 0
    recomputed_s: int = 0
    after_s: int = 0
    detection_s: int = 0
    teardown_s: int = 0
    usd: float = 0.0
    usd_wasted: float = 0.0
    traffic_usd: float = 0.0
    """The part of `usd` that traffic has cost, where the machine has a price for it and no bill has come
    yet.
    """


@dataclass(frozen=True)
class Orphan:
    """A pod whose termination was requested: of an attempt other than the current one, a second one, or of an
    ended run.
    """

    pod_id: str
    name: str
    requested_s: int
    first_requested_s: int
    times: int = 1
    created_s: int = 0
    usd_per_hour: float = 0.0


@dataclass(frozen=True)
class NotificationRecord:
    """A record that people have been notified of this condition, at that second, in these words (empty in
    older stores).
    """

    kind: AlertKind
    at_s: int
    text: str = ""


@dataclass(frozen=True)
class Origin:
    """The GitHub repository from which a run was requested; its progress is reported there."""

    repository: str
    """The repository, as owner/name."""
    commit: str
    config: str
    """The config's path in the repository."""
    key: str
    """A deduplication key: a repeated request with the same key does not start a second run."""
    pull: int | None = None
    deployment: int | None = None
    actor: str = ""
    job_url: str = ""
    branch: str = ""
    """The branch from which the run was launched; empty if unknown."""
    base: str = ""
    """The branch that the pull request proposes to change; empty if the run was not launched from an open
    pull request's branch.
    """


@dataclass(frozen=True)
class Figures:
    """Loss and learning rate of a step; None: not reported."""

    loss: float | None = None
    learning_rate: float | None = None


@dataclass(frozen=True)
class Ancestor:
    """A run from whose checkpoint of step `step` another run was started."""

    run: str
    step: int


@dataclass(frozen=True)
class Lineage:
    """Where a run was started from, if not from step 0. `ancestors`: its source, then the source's own, and
    so on; never empty. `blobs_of`: the run that holds the content of the checkpoint. Stored records from
    before these names call a lineage `branch`, and its ancestors `lineage`.
    """

    ancestors: Annotated[tuple[Ancestor, ...], Field(validation_alias=AliasChoices("ancestors", "lineage"))]
    blobs_of: str

    @property
    def source(self) -> Ancestor:
        return self.ancestors[0]

    @property
    def places(self) -> str:
        """Return the lineage as a launch takes it, the newest first: b-123@200, a-456@100"""
        return ", ".join(f"{one.run}@{one.step}" for one in self.ancestors)

    @property
    def text(self) -> str:
        """Return the lineage in words: step 200 of b-123, which started from step 100 of a-456"""
        return ", which started from ".join(f"step {one.step:,} of {one.run}" for one in self.ancestors)


@dataclass(frozen=True)
class Probe:
    """What a run measures that was launched only for that: it ends once it has made `steps` steps after its
    first one, in `seconds` or more. `config`: the name of the config whose steps it measures.
    """

    config: str
    steps: int
    seconds: float


@dataclass(frozen=True)
class Distrusted:
    """A checkpoint from which attempt `failed` could not resume: it ended for the reason `why` before its
    first step.
    """

    step: int
    attempt: int
    failed: int
    why: str = ""

    @property
    def place(self) -> tuple[int, int]:
        return self.step, self.attempt


@dataclass(frozen=True)
class Run:
    run_id: str
    spec: RunSpec
    created_s: int
    state: RunState = RunState.QUEUED
    version: int = 1
    attempt: int = 0
    """Number of the newest attempt; 0 before the first."""
    code_sha256: str = ""
    """SHA-256 of the packed working tree, as hex digits; empty if there is none, and for runs from before it
    was recorded.
    """
    commit: str = ""
    """The commit from which the config was launched, or last resumed."""
    revision: int = 0
    """How often the run was resumed with another config or other code: see `keys.code_key`."""
    origin: Origin | None = None
    attempts: tuple[Attempt, ...] = ()
    folded: Totals = Totals()
    resume: ResumePoint | None = None
    resume_chosen: bool = True
    """False between a fence and the choice of what the next attempt restores."""
    distrusted: tuple[Distrusted, ...] = ()
    """Checkpoints from which an attempt could not resume, the last such attempt last. Only a person's request
    chooses one again.
    """
    resume_failures: int = 0
    """How many checkpoints could not be resumed from since the last new durable step, or a person's
    request.
    """
    unresumable: str = ""
    """Why nothing that the next attempt could restore is left; empty: something is."""
    step_asked: int | None = None
    """The step from which a person asked to resume; None: not asked, or chosen already."""
    finite_limit: int | None = None
    """The last step up to which a diverged attempt's figures are known to be finite, until the next attempt's
    checkpoint is chosen.
    """
    rollbacks: int = 0
    """How often the run went back because its figures were not finite, since its launch or a person's
    request.
    """
    went_back_attempt: int = 0
    """Number of the newest attempt that ended so that the run went back; 0: none did, or unknown."""
    rolls_back: bool = False
    """Whether the next attempt goes back for that reason; False once its checkpoint is chosen."""
    began: Figures = Figures()
    """The first figures that the run reported."""
    renewed_attempt: int = 0
    """Number of the newest attempt when the config was last changed; 0: never."""
    desired: DesiredState = DesiredState.RUN
    drain: DrainReason | None = None
    drain_s: int | None = None
    next_check_s: int | None = 0
    """The next second at which a decision may be needed; None: nothing is left to do."""
    not_before_s: int = 0
    """No launch before this second (back-off)."""
    backoffs: int = 0
    """Infrastructure failures in a row."""
    excluded: tuple[str, ...] = ()
    """Offers that failed recently, newest last."""
    preempted_s: tuple[int, ...] = ()
    strikes: tuple[Cause, ...] = ()
    """Causes of the latest consecutive attempts that made no new step durable."""
    best_step: int = 0
    durable_step: int = 0
    trained_step: int | None = None
    """Step of the newest checkpoint when training had succeeded, from which steps under `after` are left to
    do; None: it has not.
    """
    after_done: int = 0
    """Number of steps under `after` that are done, the first ones in their order."""
    after_failed: str = ""
    """The steps among these that failed, and why."""
    step_slow_s: float | None = None
    notices: tuple[NotificationRecord, ...] = ()
    """The current conditions that people have been notified of, so that they are notified once."""
    orphans: tuple[Orphan, ...] = ()
    why: str = ""
    """Why the run is in a terminal state, as text."""
    cause: Cause | None = None
    """Cause for which the last attempt ended."""
    ended_s: int | None = None
    turn: int = 0
    """Number of the newest record of this run in the bucket; rises with each launch, machine, fence and end,
    and when a machine is confirmed gone.
    """
    cleanup_s: int | None = None
    """When chunks that no checkpoint lists can be deleted from the bucket, after the run has ended; None: no
    clean-up is due.
    """

    deleted: Deletions = NO_DELETIONS
    """What was deleted of the run to make room, as far as it is in the history."""
    deleted_told_s: int | None = None
    """When its history last said what a machine had deleted; None: never."""
    deleted_tracked: Deletions = NO_DELETIONS
    """The part of `deleted` that its tracker shows."""

    archived: bool = False
    """Whether the user has archived the ended run, so that lists leave it out."""
    lineage: Annotated[Lineage | None, Field(validation_alias=AliasChoices("lineage", "branch"))] = None
    """The checkpoint of another run from which this run was started; None: it was started from step 0."""
    forecast: Forecast = NO_FORECAST
    """What was estimated of its config when it was launched, or last resumed with another config."""
    probe: Probe | None = None
    """What it measures before it ends; None: it is an ordinary run."""
    from_elsewhere: bool = False
    """Whether it was launched, changed or resumed from another machine than the control plane's own. The
    control plane sets this, and nobody takes it back. False also in older stores, which do not say it.
    """

    @property
    def config(self) -> str:
        """Return the name of the config that it trains."""
        return self.probe.config if self.probe is not None else self.spec.name

    @property
    def current_attempt(self) -> Attempt | None:
        """Return the newest attempt; None before the first."""
        return self.attempts[-1] if self.attempts else None

    @property
    def starts_elsewhere(self) -> bool:
        """Return whether the next attempt restores the checkpoint of another run, because the run has none of
        its own yet.
        """
        return self.lineage is not None and self.resume is not None and self.resume.attempt == 0

    @property
    def has_gone_back(self) -> bool:
        """Return whether the run has ever gone back because its figures were not finite."""
        return self.went_back_attempt > 0 or self.rollbacks > 0

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_settled(self) -> bool:
        """Return whether the run has ended and none of its machines is paid for any more."""
        return (
            self.is_over
            and not self.orphans
            and all(attempt.ended_s is not None for attempt in self.attempts)
        )

    @property
    def is_at_rest(self) -> bool:
        """Return whether the run is over, its machines are gone, and nothing is left to do except the later
        clean-up of unlisted chunks.
        """
        return self.is_settled and (self.next_check_s is None or self.cleanup_s is not None)

    def noted_s(self, kind: AlertKind) -> int | None:
        """Return the second when people were notified of `kind`, or None."""
        return next((notice.at_s for notice in self.notices if notice.kind == kind), None)


@dataclass(frozen=True)
class Lease:
    """The row that heartbeats write. `version` rises with each accepted heartbeat, commit and fence."""

    run_id: str
    attempt: int = 0
    open: bool = False
    version: int = 0
    seq: int = 0
    heartbeat_s: int | None = None
    """When the last heartbeat of this attempt arrived, by the server's clock."""
    heartbeat: Heartbeat | None = None
    order: Order = Order.NONE
    order_reason: str = ""
    committed_step: int = 0
    committed_key: str = ""
    identity: str = ""
    """The identity of the attempt that holds the lease: heartbeats and commits of another attempt with the
    same number are not accepted.
    """


@dataclass(frozen=True)
class HistoryEvent:
    """An event in a run's history, with its text."""

    run_id: str
    at_s: int
    attempt: int
    kind: str
    text: str
    step: int = 0
    data: dict[str, str] = field(default_factory=dict)


class Severity(StrEnum):
    """The severity of an alert. QUIET alerts only update displays of a run's state and require no
    attention.
    """

    QUIET = "quiet"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Alert:
    """A message to people. `key` identifies the change of state it stands for: the same key is the same
    alert, sent again.
    """

    key: str
    run_id: str
    kind: AlertKind
    severity: Severity
    title: str
    text: str
    at_s: int
    attempt: int = 0


@dataclass(frozen=True)
class Change:
    """An atomic change of the store: `run` if its stored version is still `run.version - 1`, `lease` if its
    stored version is still `lease_version`.
    """

    run: Run
    lease: Lease | None = None
    lease_version: int | None = None
    events: tuple[HistoryEvent, ...] = ()
    alerts: tuple[Alert, ...] = ()


def move(run: Run, event: Event) -> Run:
    """Return the run after `event`. Raises IllegalMove if the table does not allow the event in the run's
    state.
    """
    state = TRANSITIONS.get((run.state, event))
    if state is None:
        raise IllegalMove(run.run_id, run.state, event)
    return replace(run, state=state)


def with_attempt(run: Run, attempt: Attempt) -> Run:
    """Return the run with the attempt of the same number replaced."""
    return replace(run, attempts=tuple(attempt if a.number == attempt.number else a for a in run.attempts))


def with_heartbeat(run: Run, lease: Lease) -> Run:
    """Return the run updated from the last heartbeat and commit of its newest attempt. Idempotent."""
    attempt = run.current_attempt
    if attempt is None or lease.attempt != attempt.number or attempt.fenced_s is not None:
        return run
    step = max(attempt.last_step, lease.heartbeat.step if lease.heartbeat is not None else 0)
    durable = max(attempt.durable_step, lease.committed_step)
    newest = _measured(replace(attempt, last_step=max(step, durable), durable_step=durable), lease.heartbeat)
    run = _with_steps_after_training(run, lease.heartbeat, durable)
    return replace(
        with_attempt(run, newest),
        best_step=max(run.best_step, newest.last_step),
        durable_step=max(run.durable_step, durable),
    )


def _measured(attempt: Attempt, heartbeat: Heartbeat | None) -> Attempt:
    """Return the attempt with what its agent has measured of steps, traffic and GPU memory."""
    if heartbeat is None:
        return attempt
    if heartbeat.timed_s is not None:
        spread_s = heartbeat.timed_spread_s or 0.0
        attempt = replace(
            attempt, timed_steps=heartbeat.timed_steps, timed_s=heartbeat.timed_s, timed_spread_s=spread_s
        )
    if heartbeat.traffic is not None:
        attempt = replace(attempt, traffic=_more(attempt.traffic, heartbeat.traffic))
    if heartbeat.gpus is None or heartbeat.gpus.memory_peak_mib is None:
        return attempt
    return replace(attempt, gpu_peak_mib=heartbeat.gpus.memory_peak_mib, gpu_mib=heartbeat.gpus.memory_mib)


def _more(known: Traffic, heard: Traffic) -> Traffic:
    """Return the larger counts: an agent that was started again on the same machine counts from zero."""
    return Traffic(
        down_bytes=max(known.down_bytes, heard.down_bytes),
        up_bytes=max(known.up_bytes, heard.up_bytes),
        seconds=max(known.seconds, heard.seconds),
    )


def _with_steps_after_training(run: Run, heartbeat: Heartbeat | None, durable_step: int) -> Run:
    if heartbeat is None or not heartbeat.trained:
        return run
    trained_step = run.trained_step if run.trained_step is not None else durable_step
    failed = heartbeat.after_failed or run.after_failed
    return replace(
        run,
        trained_step=trained_step,
        after_done=max(run.after_done, heartbeat.after_done),
        after_failed=failed,
    )

"""A run and its attempts, and the table of every legal move.

Two records make a run. `Run` changes seldom and is saved with compare-and-set on `version`. `Lease` changes with every heartbeat; it holds
the fencing token (`attempt`, and whether it is still `open`) together with the last heartbeat and the last commit, so that "is this
attempt the current one" and "may it commit" are one condition of one write.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from prime_train.core.causes import Cause
from prime_train.core.manifest import ResumePoint
from prime_train.core.offers import Offer
from prime_train.core.spec import RunSpec
from prime_train.core.wire import Heartbeat, Order

ATTEMPTS_KEPT_MAX = 64
CHECK_S_MAX = 900
"""The longest time between two checks of a run that is not over, in seconds. A `next_check_s` further away is due."""


class RunState(StrEnum):
    QUEUED = "queued"
    LAUNCHING = "launching"
    BOOTING = "booting"
    STARTING = "starting"
    TRAINING = "training"
    DRAINING = "draining"
    UPLOADING = "uploading"
    """The trainer has ended well, and what it saved last is not durable yet: its machine has the only copy."""
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
    LOST = "lost"
    SUCCEED = "succeed"
    FAIL = "fail"
    STOP = "stop"
    CANCEL = "cancel"
    RESUME = "resume"


TERMINAL = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.STOPPED})
ATTENDED = frozenset({RunState.LAUNCHING, RunState.BOOTING, RunState.STARTING, RunState.TRAINING, RunState.DRAINING, RunState.UPLOADING})
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
    (_S.STARTING, _E.UPLOAD): _S.UPLOADING,
    (_S.TRAINING, _E.UPLOAD): _S.UPLOADING,
    (_S.STARTING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.TRAINING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.DRAINING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.UPLOADING, _E.SUCCEED): _S.SUCCEEDED,
    **{(state, _E.LOST): _S.QUEUED for state in ATTENDED},
    **{(state, _E.FAIL): _S.FAILED for state in ATTENDED | {_S.QUEUED}},
    **{(state, _E.STOP): _S.STOPPED for state in ATTENDED | {_S.QUEUED}},
    **{(state, _E.CANCEL): _S.CANCELLED for state in ATTENDED | {_S.QUEUED}},
    (_S.FAILED, _E.RESUME): _S.QUEUED,
    (_S.STOPPED, _E.RESUME): _S.QUEUED,
    (_S.CANCELLED, _E.RESUME): _S.QUEUED,
}


class IllegalMove(Exception):
    """An event that the table does not allow in this state: a bug of ours, or a wish of the user's that comes too late."""

    def __init__(self, run_id: str, state: RunState, event: Event) -> None:
        allowed = ", ".join(sorted(e.value for s, e in TRANSITIONS if s is state)) or "nothing"
        super().__init__(f"run {run_id} is {state.value}: {event.value} is not possible; possible: {allowed}")
        self.run_id, self.state, self.event = run_id, state, event


class DrainReason(StrEnum):
    USER = "user"
    BUDGET = "budget"
    HOURS = "hours"
    DEADLINE = "deadline"
    PREEMPTION = "preemption"
    FUNDS = "funds"


class DesiredState(StrEnum):
    """What the user last asked for."""

    RUN = "run"
    STOP = "stop"
    CANCEL = "cancel"


@dataclass(frozen=True)
class TrackedStep:
    """The highest step that the tracker has told of while no heartbeats came, and when it last rose; None: not since it was first told
    of."""

    step: int
    rose_s: int | None = None


@dataclass(frozen=True)
class Attempt:
    """One machine's turn. Times are whole seconds of the control plane's clock; None: it has not happened."""

    number: int
    offer: Offer
    launched_s: int
    pod_id: str | None = None
    created_s: int | None = None
    """Since when the machine is there and paid for, in the provider's own words; None: not told, `launched_s` counts."""
    agent_put_s: int | None = None
    first_heartbeat_s: int | None = None
    first_step_s: int | None = None
    last_sign_s: int | None = None
    """Last proof of life: the last heartbeat, or the last step when it stalled; before the fence, the tracker's while no heartbeats
    came."""
    tracked: TrackedStep | None = None
    resumed_step: int = 0
    best_step_before: int = 0
    """Highest step of all earlier attempts: up to it, steps are done again."""
    last_step: int = 0
    durable_step: int = 0
    evidence_asked_s: int | None = None
    uploading_s: int | None = None
    """Since when the machine has been kept only because it has the only copy of the last checkpoint."""
    fenced_s: int | None = None
    cause: Cause | None = None
    detail: str = ""
    terminate_asked_s: int | None = None
    ended_s: int | None = None
    """Since when the pod is gone, or, where the provider does not tell that, when it said so: until then it is paid for."""
    billed_usd: float | None = None
    """What the provider says it cost in all; None: not told (yet), the price of its offer counts."""
    identity: str = ""
    """Random: two attempts that were given the same number, by a store and by an older copy of it, differ in it."""


@dataclass(frozen=True)
class Totals:
    """What attempts no longer listed one by one had cost, in seconds and dollars."""

    attempts: int = 0
    paid_s: int = 0
    provision_s: int = 0
    restore_s: int = 0
    useful_s: int = 0
    recomputed_s: int = 0
    detection_s: int = 0
    teardown_s: int = 0
    usd: float = 0.0
    usd_wasted: float = 0.0


@dataclass(frozen=True)
class Orphan:
    """A pod that should not be there and has been asked back: of another attempt than the current one, a second one, or of an ended run."""

    pod_id: str
    name: str
    asked_s: int
    first_asked_s: int
    times: int = 1
    created_s: int = 0
    usd_per_hour: float = 0.0


@dataclass(frozen=True)
class Notice:
    """People have been told this about the current state of things, at that second."""

    kind: str
    at_s: int


@dataclass(frozen=True)
class Origin:
    """Where a run was asked for, where that is a repository on GitHub: there people are told how it goes."""

    repository: str
    """owner/name"""
    commit: str
    config: str
    """The config's path in the repository."""
    key: str
    """The same for the same wish: a wish that is repeated is no second run."""
    pull: int | None = None
    deployment: int | None = None
    actor: str = ""
    job_url: str = ""


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
    """Of the packed working tree, as hex digits; empty where there is none, and of runs from before it was kept."""
    commit: str = ""
    """The commit the config was launched from, or last resumed with."""
    revision: int = 0
    """How often it was resumed with another config or other code: see `keys.code_key`."""
    origin: Origin | None = None
    attempts: tuple[Attempt, ...] = ()
    folded: Totals = Totals()
    resume: ResumePoint | None = None
    resume_chosen: bool = True
    """False between a fence and the choice of what the next attempt restores."""
    want: DesiredState = DesiredState.RUN
    drain: DrainReason | None = None
    drain_s: int | None = None
    next_check_s: int | None = 0
    """The next second at which there may be something to decide; None: nothing is left to do."""
    not_before_s: int = 0
    """No launch before this second (back-off)."""
    backoffs: int = 0
    """Infrastructure failures in a row."""
    excluded: tuple[str, ...] = ()
    """Offers that failed lately, newest last."""
    preempted_s: tuple[int, ...] = ()
    strikes: tuple[Cause, ...] = ()
    """Causes of the latest attempts in a row that made no new step durable."""
    best_step: int = 0
    durable_step: int = 0
    step_slow_s: float | None = None
    notices: tuple[Notice, ...] = ()
    """What people have been told about the current state of things, so that they are told once."""
    orphans: tuple[Orphan, ...] = ()
    why: str = ""
    """Why the run is in a terminal state, in words."""
    cause: Cause | None = None
    """Cause of the last attempt's end."""
    ended_s: int | None = None
    turn: int = 0
    """Rises with each launch, machine, fence and end, and when a machine is gone: the state after it is recorded in the bucket, under this
    number."""
    cleanup_s: int | None = None
    """When chunks that no checkpoint lists can go from the bucket, after the run has ended; None: there are none to look for."""

    @property
    def current_attempt(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_at_rest(self) -> bool:
        """It is over, its machines are gone, and nothing is left to do but to look later for chunks that nobody needs."""
        settled = not self.orphans and all(attempt.ended_s is not None for attempt in self.attempts)
        return self.is_over and settled and (self.next_check_s is None or self.cleanup_s is not None)

    def noted_s(self, kind: str) -> int | None:
        """When people were told of `kind`, or None."""
        return next((notice.at_s for notice in self.notices if notice.kind == kind), None)


@dataclass(frozen=True)
class Lease:
    """The row that sends heartbeats write. `version` rises with each accepted heartbeat, commit and fence."""

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
    """Of the attempt that holds it: heartbeats and commits of another one with the same number are not accepted."""


@dataclass(frozen=True)
class HistoryEvent:
    """One line of a run's history."""

    run_id: str
    at_s: int
    attempt: int
    kind: str
    text: str
    step: int = 0
    data: dict[str, str] = field(default_factory=dict)


class Severity(StrEnum):
    """QUIET is for those who mirror a run's state; nobody's attention is asked for."""

    QUIET = "quiet"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


SHOWN = "shown"
"""Kind of an alert that stands for no change of state: what is shown of a run is only to be brought up to date."""


@dataclass(frozen=True)
class Alert:
    """Something a person is told. `key` names the change of state it stands for: the same key is the same alert, sent again."""

    key: str
    run_id: str
    kind: str
    severity: Severity
    title: str
    text: str
    at_s: int
    attempt: int = 0


@dataclass(frozen=True)
class Change:
    """One atomic write: `run` if its stored version is still `run.version - 1`, `lease` if its stored version is still `lease_version`."""

    run: Run
    lease: Lease | None = None
    lease_version: int | None = None
    happenings: tuple[HistoryEvent, ...] = ()
    alerts: tuple[Alert, ...] = ()


def move(run: Run, event: Event) -> Run:
    """The run after `event`. Raises IllegalMove when the table has no such row."""
    state = TRANSITIONS.get((run.state, event))
    if state is None:
        raise IllegalMove(run.run_id, run.state, event)
    return replace(run, state=state)


def with_attempt(run: Run, attempt: Attempt) -> Run:
    """The run with its attempt of that attempt replaced."""
    return replace(run, attempts=tuple(attempt if a.number == attempt.number else a for a in run.attempts))

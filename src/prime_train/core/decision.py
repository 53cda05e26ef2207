"""What there is to do next: each decision is a value, and one of these."""

from dataclasses import dataclass, field

from prime_train.core.causes import Cause
from prime_train.core.run import DrainReason, RunState, Severity, TrackedStep
from prime_train.core.verdict import Pod


@dataclass(frozen=True)
class Wait:
    until_s: int | None
    why: str
    sign_s: int | None = None
    """A sign of life that no heartbeat brought, to be remembered."""
    tracked: TrackedStep | None = None
    """The step that came with it, to be remembered too."""


@dataclass(frozen=True)
class Adopt:
    """The provider knows the pod of the current attempt: the launch is settled. `usd_per_hour`: what it says that it costs; `created_s`:
    since when it says that it is there."""

    pod_id: str
    usd_per_hour: float = 0.0
    created_s: int = field(default=0, compare=False)


@dataclass(frozen=True)
class PutAgent:
    pod_id: str


@dataclass(frozen=True)
class SeeHeartbeat:
    """The agent has sent its first heartbeat."""


@dataclass(frozen=True)
class SeeStep:
    """The trainer has made its first step of this attempt."""

    step: int


@dataclass(frozen=True)
class SeeUpload:
    """The trainer has ended well, and its last checkpoint is not durable yet."""

    step: int


@dataclass(frozen=True)
class ChooseResume:
    """The fence has fallen: choose what the next attempt restores."""


@dataclass(frozen=True)
class Launch:
    on_demand: bool


@dataclass(frozen=True)
class Hold:
    """Nothing may be rented now: wait, longer each time, and tell people once as long as it lasts."""

    kind: str
    title: str
    why: str


@dataclass(frozen=True)
class Note:
    """Tell people, once as long as this state of things lasts."""

    kind: str
    severity: Severity
    title: str
    text: str
    sign_s: int | None = None
    tracked: TrackedStep | None = None
    """Both as for `Wait`."""


@dataclass(frozen=True)
class AllClear:
    """What had been told has passed: forget that it was, so that the next time is told again."""

    kinds: tuple[str, ...]


@dataclass(frozen=True)
class AskEvidence:
    cause: Cause
    text: str


@dataclass(frozen=True)
class Drain:
    reason: DrainReason
    text: str


@dataclass(frozen=True)
class Recover:
    """Fence this attempt and queue the run again."""

    cause: Cause
    detail: str


@dataclass(frozen=True)
class Finish:
    """Fence and end the run in a terminal state."""

    state: RunState
    cause: Cause | None
    why: str


@dataclass(frozen=True)
class Terminate:
    """Ask the provider to take these pods back (again)."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class CleanUp:
    """The run is over, and nobody uploads any more: chunks that no checkpoint lists can go from the bucket."""


@dataclass(frozen=True)
class Settle:
    """The provider says that these attempts' pods are gone (or that a launch never made one): they cost nothing more."""

    attempts: tuple[int, ...]
    orphans: tuple[str, ...] = ()
    told: tuple[Pod, ...] = ()
    """What the provider still tells of these pods, such as since when they are gone."""


Decision = (
    Wait
    | Adopt
    | PutAgent
    | SeeHeartbeat
    | SeeStep
    | SeeUpload
    | ChooseResume
    | Launch
    | Hold
    | Note
    | AllClear
    | AskEvidence
    | Drain
    | Recover
    | Finish
    | Terminate
    | CleanUp
    | Settle
)

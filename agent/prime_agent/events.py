"""What happens to an agent: the only things its core ever hears of. Each says a fact; none says what to do about it."""

from dataclasses import dataclass, field

from prime_agent.checkpoints.stats import Moved
from prime_agent.gpu.reading import GpuSnapshot
from prime_agent.trainer.services import Answer, Services
from prime_train.core.causes import Cause
from prime_train.core.manifest import ResumePoint
from prime_train.core.wire import Phase, Reply
from prime_train.trainers import Progress


@dataclass(frozen=True)
class Started:
    """The agent knows its job."""


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class PhaseDone:
    phase: Phase


@dataclass(frozen=True)
class PhaseFailed:
    phase: Phase
    cause: Cause
    detail: str
    log_tail: str = ""


@dataclass(frozen=True)
class FellBack:
    """Checkpoint `damaged_step` is damaged in the bucket (`why`; `digests` of what is wrong); `point` was restored instead."""

    point: ResumePoint
    damaged_step: int
    digests: frozenset[str]
    why: str


@dataclass(frozen=True)
class Noted:
    """What it is doing, for people."""

    text: str


@dataclass(frozen=True)
class StepsSeen:
    """Progress the trainer reported since the last time, in its order."""

    rows: tuple[Progress, ...]


@dataclass(frozen=True)
class RuleFired:
    """A line of the trainer's output matched a rule that stops it."""

    cause: Cause
    line: str


@dataclass(frozen=True)
class TrainerExited:
    """The trainer and all its processes are gone, its output is read to the end. `cause` and `detail` are what the output tells;
    `code` is negative for a signal."""

    code: int
    cause: Cause
    detail: str = ""
    log_tail: str = ""


@dataclass(frozen=True)
class Sensed:
    """The machine's state; None for what cannot be read."""

    disk_free_gib: float | None = None
    gpus: GpuSnapshot = field(default_factory=GpuSnapshot)


@dataclass(frozen=True)
class ServicesFound:
    """The services that the trainer which is about to start will have beside it."""

    services: Services


@dataclass(frozen=True)
class ServiceAnswered:
    """The service called `name` was asked whether it lives."""

    name: str
    answer: Answer


@dataclass(frozen=True)
class HeartbeatAnswered:
    reply: Reply


@dataclass(frozen=True)
class HeartbeatFailed:
    why: str


@dataclass(frozen=True)
class CheckpointsScanned:
    """A look into the checkpoint folder: complete and not yet uploaded steps, and whether one is being written. `took_s`: the look;
    `begun`: the newest step that the trainer has begun to save, complete or not; `removed`: the folder was there once, and is not now."""

    steps: tuple[int, ...]
    saving: bool
    took_s: float = 0.0
    begun: int = 0
    removed: bool = False


@dataclass(frozen=True)
class Uploaded:
    """The step's manifest is in the bucket under `key`."""

    step: int
    key: str
    moved: Moved | None = None


@dataclass(frozen=True)
class UploadFailed:
    step: int
    why: str


@dataclass(frozen=True)
class CommitAnswered:
    step: int
    reply: Reply


@dataclass(frozen=True)
class Settled:
    """After a commit: the pointer was moved and the bucket cleaned up, or the try was given up."""


@dataclass(frozen=True)
class CommitFailed:
    step: int
    why: str


@dataclass(frozen=True)
class EvidenceDone:
    """Gathering is over. `kept`: it is in the bucket."""

    kept: bool
    why: str = ""


@dataclass(frozen=True)
class LogKept:
    """The log of what failed is in the bucket, or cannot be brought there."""


@dataclass(frozen=True)
class SigTerm:
    """The machine is about to be taken away."""


Event = (
    Started
    | Tick
    | PhaseDone
    | PhaseFailed
    | FellBack
    | Noted
    | StepsSeen
    | RuleFired
    | TrainerExited
    | Sensed
    | ServicesFound
    | ServiceAnswered
    | HeartbeatAnswered
    | HeartbeatFailed
    | CheckpointsScanned
    | Uploaded
    | UploadFailed
    | CommitAnswered
    | Settled
    | CommitFailed
    | EvidenceDone
    | LogKept
    | SigTerm
)

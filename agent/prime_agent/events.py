"""Events, the only input of the agent's core besides the time. Each states a fact and never what to do about
it.
"""

from dataclasses import dataclass, field

from prime_agent.checkpoints.promise import Seen
from prime_agent.checkpoints.stats import Moved
from prime_agent.gpu.reading import GpuSnapshot
from prime_agent.trainer.services import ProbeReply, Services
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Deletions, Phase, Reply, Traffic
from prime_train.spec.causes import Action, Cause
from prime_train.trainers.of_spec import Progress


@dataclass(frozen=True)
class Started:
    """The agent has received its job and starts."""


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
    """Checkpoint `damaged_step` is damaged in the bucket for the reason `why`, in the chunks `digests`;
    `point` was restored instead.
    """

    point: ResumePoint
    damaged_step: int
    digests: frozenset[str]
    why: str


@dataclass(frozen=True)
class Restored:
    """A checkpoint was restored. `fresh_below`: as in its manifest."""

    fresh_below: int | None


@dataclass(frozen=True)
class Noted:
    """A note for people about what the agent is doing."""

    text: str


@dataclass(frozen=True)
class StepsReported:
    """Progress that the trainer reported since the last such event, in the trainer's order."""

    rows: tuple[Progress, ...]


@dataclass(frozen=True)
class RuleFired:
    """A line of the trainer's output matched a rule that stops it."""

    cause: Cause
    line: str


@dataclass(frozen=True)
class ResumeMissed:
    """The trainer made its first step without the line that it prints when it loads the checkpoint to resume
    from.
    """

    step: int


@dataclass(frozen=True)
class TrainerExited:
    """The trainer and all its processes have ended, and its output was read to the end.

    `cause` and `detail` are derived from the output; `code` is negative for a signal.
    """

    code: int
    cause: Cause
    detail: str = ""
    log_tail: str = ""
    action: Action | None = None
    """What follows by the trainer's own words; None: what follows from the cause."""


@dataclass(frozen=True)
class Sensed:
    """State of the machine; a field is None if it cannot be read."""

    disk_free_gib: float | None = None
    gpus: GpuSnapshot = field(default_factory=GpuSnapshot)
    traffic: Traffic | None = None


@dataclass(frozen=True)
class ServicesFound:
    """Services that will run beside the trainer that is about to start."""

    services: Services


@dataclass(frozen=True)
class ServiceAnswered:
    """Result of checking whether the service called `name` is alive."""

    name: str
    answer: ProbeReply


@dataclass(frozen=True)
class HeartbeatAnswered:
    reply: Reply


@dataclass(frozen=True)
class HeartbeatFailed:
    why: str


@dataclass(frozen=True)
class CheckpointsScanned:
    """Result of a scan of the checkpoint folder: `steps` that are complete and not yet uploaded, and whether
    one is being written.

    `took_s` is the duration of the scan in seconds. `begun` is the newest step that the trainer has begun to
    save, complete or not. `removed` says that the folder existed earlier and is missing or empty now. `seen`:
    what else lies in and near the folder; None: not looked at. `again`: those of `steps` that were uploaded
    before, and have changed since. `waits_to_look`: the last one may have changed, too, and is compared once
    the control plane answers.
    """

    steps: tuple[int, ...]
    saving: bool
    took_s: float = 0.0
    begun: int = 0
    removed: bool = False
    seen: Seen | None = None
    again: tuple[int, ...] = ()
    waits_to_look: bool = False


@dataclass(frozen=True)
class Uploaded:
    """The step's manifest is in the bucket under `key`. `owes_best`: the trainer's best checkpoint is an
    older one that was passed over.
    """

    step: int
    key: str
    moved: Moved | None = None
    owes_best: bool = False


@dataclass(frozen=True)
class UploadFailed:
    step: int
    why: str


@dataclass(frozen=True)
class OutputsUploaded:
    """An upload of outputs, logs and metrics has ended.

    `refused` says which outputs cannot be uploaded as they are, and why; `failed` why the upload failed,
    while a later one may succeed.
    """

    refused: str = ""
    failed: str = ""


@dataclass(frozen=True)
class StepEnded:
    """The command of a step under `after` has ended. `problem`: why it failed; "" if it did not."""

    index: int
    problem: str = ""
    log_tail: str = ""


@dataclass(frozen=True)
class EvaluationEnded:
    """An evaluation beside the trainer has ended. `problem`: why it failed; "" if it did not."""

    index: int
    step: int
    problem: str = ""


@dataclass(frozen=True)
class CommitAnswered:
    step: int
    reply: Reply


@dataclass(frozen=True)
class Settled:
    """After a commit, `latest.json` was moved and the bucket cleaned up, or that was given up."""


@dataclass(frozen=True)
class Deleted:
    """Everything that the agent has deleted since it was started."""

    total: Deletions


@dataclass(frozen=True)
class CheckpointVerified:
    """All of the checkpoint of `step` was read back from the bucket. `damage`: what is damaged there; "" if
    nothing is.
    """

    step: int
    damage: str = ""


@dataclass(frozen=True)
class CommitFailed:
    step: int
    why: str


@dataclass(frozen=True)
class EvidenceDone:
    """Evidence was gathered. `kept` says whether it is in the bucket, and `why` the reason if not."""

    kept: bool
    why: str = ""


@dataclass(frozen=True)
class LogKept:
    """The log of what failed is in the bucket, or cannot be uploaded."""


@dataclass(frozen=True)
class SigTerm:
    """SIGTERM: the machine is about to be preempted."""


PhaseEvent = Started | PhaseDone | PhaseFailed | FellBack | Restored
TrainerEvent = StepsReported | RuleFired | ResumeMissed | TrainerExited
MachineEvent = Sensed | ServicesFound | ServiceAnswered | SigTerm
CheckpointEvent = (
    CheckpointsScanned
    | Uploaded
    | UploadFailed
    | CommitAnswered
    | CommitFailed
    | Settled
    | CheckpointVerified
    | Deleted
)
OutputEvent = OutputsUploaded | StepEnded | EvaluationEnded | EvidenceDone | LogKept
ReplyEvent = HeartbeatAnswered | HeartbeatFailed
Event = Tick | Noted | PhaseEvent | TrainerEvent | MachineEvent | CheckpointEvent | OutputEvent | ReplyEvent

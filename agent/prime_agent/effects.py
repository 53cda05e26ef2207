"""Effects that the agent's core requests. The shell executes them in order, and their results return as
events.
"""

from dataclasses import dataclass
from enum import IntEnum

from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Commit, Heartbeat, Phase


class Force(IntEnum):
    """How the trainer is made to exit."""

    ASK = 15
    """SIGTERM: save and exit."""
    KILL = 9


class Leave(IntEnum):
    """Exit code of the agent."""

    REPORTED = 0
    """The end of the attempt was reported to the control plane."""
    UNHEARD = 3
    """The attempt is over, but its end could not be reported."""
    SPENT = 4
    """The same, and the run's dollars are spent: the machine should end by itself, because nobody may be
    there to give it back.
    """
    BUG = 70
    FENCED = 75
    """Another attempt has taken over."""


@dataclass(frozen=True)
class RunPhase:
    """Run this phase in the background; the result is PhaseDone or PhaseFailed."""

    phase: Phase


@dataclass(frozen=True)
class CancelPhase:
    """Stop the running phase and kill its processes."""


@dataclass(frozen=True)
class StartTrainer:
    pass


@dataclass(frozen=True)
class SignalTrainer:
    force: Force


@dataclass(frozen=True)
class SendHeartbeat:
    heartbeat: Heartbeat


@dataclass(frozen=True)
class SendExit:
    """Send the last heartbeat, whose phase is EXITED."""

    heartbeat: Heartbeat


@dataclass(frozen=True)
class ScanCheckpoints:
    """Scan the checkpoint folder. `settled` means that the trainer has ended in an orderly way, so that files
    can no longer change and count as settled.
    """

    settled: bool = False


@dataclass(frozen=True)
class Upload:
    """Upload the checkpoint of this step, which the last scan found."""

    step: int


@dataclass(frozen=True)
class SendCommit:
    commit: Commit


@dataclass(frozen=True)
class Settle:
    """Point `latest.json` at this step, whose commit was confirmed, and prune."""

    step: int


@dataclass(frozen=True)
class VerifyCheckpoint:
    """Read all of the checkpoint of this step back from the bucket; the result is CheckpointVerified."""

    step: int


@dataclass(frozen=True)
class FreeDiskSpace:
    """Remove local checkpoints that are committed, if the disk is nearly full."""


@dataclass(frozen=True)
class GatherEvidence:
    pass


@dataclass(frozen=True)
class KeepLog:
    """Upload the log of the failed phase to the bucket."""

    phase: Phase


@dataclass(frozen=True)
class UploadOutputs:
    """Upload the outputs that have changed, and what was added to logs and metrics. `trainer_ended` says that
    files can no longer change.
    """

    trainer_ended: bool = False


@dataclass(frozen=True)
class RunStep:
    """Run the command of a step under `after`, whose place in the config is `index`, for the checkpoint of
    `step`; 0: there is none. The result is StepEnded.
    """

    index: int
    step: int
    tried: int


@dataclass(frozen=True)
class Evaluate:
    """Run the command of a step under `after` beside the trainer, for the checkpoint of `step`. The result is
    EvaluationEnded.
    """

    index: int
    step: int


@dataclass(frozen=True)
class PassOver:
    """Note that the checkpoint of `step` is not evaluated, because that of the step `newer` is complete."""

    index: int
    step: int
    newer: int


@dataclass(frozen=True)
class CancelSteps:
    """Kill the command of a step under `after`, and start no other one."""


@dataclass(frozen=True)
class FallBack:
    """Continue uploads from `point`, which was restored instead of a newer checkpoint; chunks with the
    digests `damaged` are damaged in the bucket.
    """

    point: ResumePoint
    damaged: frozenset[str]


@dataclass(frozen=True)
class Exit:
    """Kill what is left of the trainer and end the agent. This is always the last effect."""

    code: Leave


Effect = (
    RunPhase
    | CancelPhase
    | StartTrainer
    | SignalTrainer
    | SendHeartbeat
    | SendExit
    | ScanCheckpoints
    | Upload
    | SendCommit
    | Settle
    | VerifyCheckpoint
    | FreeDiskSpace
    | GatherEvidence
    | KeepLog
    | UploadOutputs
    | RunStep
    | Evaluate
    | PassOver
    | CancelSteps
    | FallBack
    | Exit
)

"""What the agent's core wants done. The shell carries them out in order; what comes of them returns as events."""

from dataclasses import dataclass
from enum import IntEnum

from prime_train.core.manifest import ResumePoint
from prime_train.core.wire import Commit, Heartbeat, Phase


class Force(IntEnum):
    """How the trainer is told to leave."""

    ASK = 15
    """SIGTERM: save and leave."""
    KILL = 9


class Leave(IntEnum):
    """The agent's own exit code."""

    SAID = 0
    """The control plane knows how the attempt ended."""
    UNHEARD = 3
    """The attempt is over, but nobody could be told."""
    BUG = 70
    FENCED = 75
    """Another attempt has taken over."""


@dataclass(frozen=True)
class RunPhase:
    """Do this phase in the background; answered by PhaseDone or PhaseFailed."""

    phase: Phase


@dataclass(frozen=True)
class CancelPhase:
    """Stop the phase under way and kill what it started."""


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
    """The last word: a heartbeat with phase EXITED."""

    heartbeat: Heartbeat


@dataclass(frozen=True)
class ScanCheckpoints:
    """`settled`: the trainer has ended well, so nobody writes any more and what is there need not be waited for."""

    settled: bool = False


@dataclass(frozen=True)
class Upload:
    """Upload the step that the last scan found."""

    step: int


@dataclass(frozen=True)
class SendCommit:
    commit: Commit


@dataclass(frozen=True)
class Settle:
    """The commit of this step was confirmed: move the pointer for people and prune."""

    step: int


@dataclass(frozen=True)
class MakeRoom:
    """Remove local checkpoints that are committed, if the disk is nearly full."""


@dataclass(frozen=True)
class GatherEvidence:
    pass


@dataclass(frozen=True)
class KeepLog:
    """Bring the log of the phase that failed into the bucket."""

    phase: Phase


@dataclass(frozen=True)
class FallBack:
    """Uploads go on from `point`, which was restored instead of a newer one; chunks with these digests are damaged in the bucket."""

    point: ResumePoint
    damaged: frozenset[str]


@dataclass(frozen=True)
class Exit:
    """Kill what is left of the trainer and end the agent. Nothing follows it."""

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
    | MakeRoom
    | GatherEvidence
    | KeepLog
    | FallBack
    | Exit
)

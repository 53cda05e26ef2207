"""The possible next actions for a run, one value type for each."""

from dataclasses import dataclass, field

from prime_train.market.quotes import Quote
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.run import DrainReason, RunState, Severity
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Deletions
from prime_train.spec.causes import Action, Cause
from prime_train.text.formatting import usd

GAIN_SHARE = 1.0
"""What a move must save beyond its own cost, as a share of that cost: an estimate may be wrong by so much."""


@dataclass(frozen=True)
class Move:
    """A machine to move to. `stay_usd`: what the run is expected to cost to its end if it stays; `move_usd`:
    if it moves, of which `cost_usd` are the move's own.
    """

    quote: Quote
    stay_usd: float
    move_usd: float
    cost_usd: float

    @property
    def saves_usd(self) -> float:
        return self.stay_usd - self.move_usd

    @property
    def pays(self) -> bool:
        """Return whether the move saves more than it may be wrong by."""
        return self.saves_usd > self.cost_usd * GAIN_SHARE

    @property
    def why(self) -> str:
        """Return the figures in words."""
        offer = self.quote.offer
        return (
            f"{usd(self.stay_usd)} are expected to the end here, {usd(self.move_usd)} on "
            f"{offer.gpu or 'a machine'} at {usd(offer.usd_per_hour)}/h from {offer.provider}, of which "
            f"{usd(self.cost_usd)} are the move "
            "itself"
        )


@dataclass(frozen=True)
class Wait:
    until_s: int | None
    why: str


@dataclass(frozen=True)
class Adopt:
    """The provider lists the pod of the current attempt, which settles the launch. `usd_per_hour`: its price
    as the provider reports it; `created_s`: the second of its creation as the provider reports it.
    """

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
    """The trainer has exited successfully, and its last checkpoint or its outputs are not durable yet."""

    step: int


@dataclass(frozen=True)
class SeeAfter:
    """The trainer has ended with success, all that it left is durable, and the steps under `after` are
    run.
    """

    step: int


@dataclass(frozen=True)
class SeeDeletions:
    """The agent has deleted something that the history does not say yet; `deleted`: all that it has deleted
    since it was started.
    """

    deleted: Deletions


@dataclass(frozen=True)
class ChooseResume:
    """The attempt is fenced: choose what the next attempt restores."""


@dataclass(frozen=True)
class Launch:
    on_demand: bool


@dataclass(frozen=True)
class Hold:
    """Nothing can be rented now: wait, longer each time, and notify people once as long as this lasts."""

    kind: AlertKind
    title: str
    why: str


@dataclass(frozen=True)
class Notify:
    """Notify people, once as long as this condition lasts."""

    kind: AlertKind
    severity: Severity
    title: str
    text: str


@dataclass(frozen=True)
class AllClear:
    """The reason for these notices has passed: clear them, so that people are notified again next time."""

    kinds: tuple[AlertKind, ...]

    def __post_init__(self) -> None:
        if mute := [kind.value for kind in self.kinds if not policy_of(kind).all_clear]:
            raise ValueError(f"the policies of {', '.join(mute)} have no text for an all-clear")


@dataclass(frozen=True)
class RequestEvidence:
    cause: Cause
    text: str


@dataclass(frozen=True)
class Drain:
    reason: DrainReason
    text: str


@dataclass(frozen=True)
class Recover:
    """Fence this attempt and queue the run again. `action`: what follows, if it is not what follows from the
    cause.
    """

    cause: Cause
    detail: str
    action: Action | None = None


@dataclass(frozen=True)
class Finish:
    """Fence and end the run in a terminal state."""

    state: RunState
    cause: Cause | None
    why: str


@dataclass(frozen=True)
class Terminate:
    """Request the end of these pods from the provider, possibly again."""

    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class CleanUp:
    """The run is over and nothing is uploaded any more: delete chunks that no checkpoint lists from the
    bucket.
    """


@dataclass(frozen=True)
class Settle:
    """The provider confirms that these attempts' pods are gone, or that a launch never created one: they cost
    nothing more.
    """

    attempts: tuple[int, ...]
    orphans: tuple[str, ...] = ()
    reports: tuple[Pod, ...] = ()
    """The provider's last reports on these pods, for example when they ended."""


Decision = (
    Wait
    | Adopt
    | PutAgent
    | SeeHeartbeat
    | SeeStep
    | SeeUpload
    | SeeDeletions
    | SeeAfter
    | ChooseResume
    | Launch
    | Hold
    | Notify
    | AllClear
    | RequestEvidence
    | Drain
    | Recover
    | Finish
    | Terminate
    | CleanUp
    | Settle
)

"""The possible bottlenecks of a prime-rl run, and their wording."""

from dataclasses import dataclass
from enum import StrEnum, auto


class Bound(StrEnum):
    """The kind of limit of a side. More machines of the same kind speed up a side bound by throughput, but
    not one bound by latency.
    """

    LATENCY = auto()
    THROUGHPUT = auto()
    OVERHEAD = auto()
    UNKNOWN = auto()


class Bottleneck(StrEnum):
    INFERENCE = auto()
    TOOLS = auto()
    CONCURRENCY = auto()
    ROLLOUTS = auto()
    PAUSES = auto()
    TURNS = auto()
    TRAINER = auto()
    CHECKPOINTS = auto()
    BROADCAST = auto()
    BALANCED = auto()
    UNKNOWN = auto()


TITLES: dict[Bottleneck, tuple[str, Bound]] = {
    Bottleneck.INFERENCE: ("rollouts: the inference engines are full", Bound.THROUGHPUT),
    Bottleneck.TOOLS: ("rollouts: their tools and environments take long", Bound.LATENCY),
    Bottleneck.CONCURRENCY: ("rollouts: too few at once, the engines have spare capacity", Bound.LATENCY),
    Bottleneck.ROLLOUTS: ("rollouts; it is unknown whether engines or tools are slow", Bound.UNKNOWN),
    Bottleneck.PAUSES: ("a few long waits, typical of evaluations", Bound.OVERHEAD),
    Bottleneck.TURNS: ("trainer and rollouts take turns waiting for each other", Bound.LATENCY),
    Bottleneck.TRAINER: ("the trainer's own computing", Bound.THROUGHPUT),
    Bottleneck.CHECKPOINTS: ("the trainer pauses for its saves", Bound.OVERHEAD),
    Bottleneck.BROADCAST: ("the trainer pauses to send its weights", Bound.OVERHEAD),
    Bottleneck.BALANCED: ("none: trainer and rollouts are equally fast", Bound.THROUGHPUT),
    Bottleneck.UNKNOWN: ("not known", Bound.UNKNOWN),
}


class Certainty(StrEnum):
    SURE = auto()
    LIKELY = auto()
    UNKNOWN = auto()


class Critical(StrEnum):
    """The activity that determines the length of a step; everything else overlaps with it."""

    ROLLOUTS = "rollouts"
    TRAINER = "trainer"
    BOTH = "both, one after the other"
    EITHER = "both, in parallel"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class ProfileSummary:
    """The diagnosis of a run, with its reasons and doubts as text for people."""

    bottleneck: Bottleneck
    bound: Bound
    certainty: Certainty
    critical_path: Critical
    reasons: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return TITLES[self.bottleneck][0]

    @property
    def is_known(self) -> bool:
        return self.bottleneck is not Bottleneck.UNKNOWN


def percent(share: float) -> str:
    """Return a share from 0 to 1 as text in percent."""
    return f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """Return a number of seconds as text."""
    if value < 0.001:
        return "0 s"
    return f"{value:.2g} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"

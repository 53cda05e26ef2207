"""The steps of a drill, and what came of each."""

from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """A step, by the word that is shown for it, in the order in which they are made."""

    LOOK = "look"
    RENT = "rent"
    INSTALL = "install"
    HEARTBEAT = "heartbeat"
    CHECKPOINT = "checkpoint"
    LOSS = "loss"
    GIVE_BACK = "give back"


class Outcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    NOT_REACHED = "not reached"


@dataclass(frozen=True)
class StepResult:
    """What came of a step. `at_s`: seconds since the drill began; None: it was not reached."""

    step: Step
    outcome: Outcome
    text: str = ""
    at_s: float | None = None


@dataclass(frozen=True)
class Left:
    """A machine that could not be given back. `name`: under which the provider's page shows it."""

    name: str
    pod_id: str
    usd_per_hour: float
    why: str


class Stopped(Exception):
    """A step has failed, and so none of the next ones is made."""

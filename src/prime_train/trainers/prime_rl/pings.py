"""Heartbeats of prime-rl: a GET after each step, from its trainer and its orchestrator apart.

A ping does not say which step it was. It tells what metrics cannot: which of the two stopped first, and so which of them to look at.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

PREFIX = "/hb/"


class Component(StrEnum):
    TRAINER = "trainer"
    ORCHESTRATOR = "orchestrator"


@dataclass(frozen=True)
class Heard:
    """How many pings of a component came, and when the last one did."""

    count: int = 0
    last_s: float | None = None


@dataclass(frozen=True)
class Pings:
    trainer: Heard = Heard()
    orchestrator: Heard = Heard()

    def of(self, component: Component) -> Heard:
        match component:
            case Component.TRAINER:
                return self.trainer
            case Component.ORCHESTRATOR:
                return self.orchestrator


def component_of(path: str) -> Component | None:
    """Who asks for this path of our server; None: nobody we know."""
    name = path.partition("?")[0].removeprefix(PREFIX)
    return Component(name) if path.startswith(PREFIX) and name in list(Component) else None


def pinged(pings: Pings, component: Component, now_s: float) -> Pings:
    heard = Heard(pings.of(component).count + 1, now_s)
    match component:
        case Component.TRAINER:
            return replace(pings, trainer=heard)
        case Component.ORCHESTRATOR:
            return replace(pings, orchestrator=heard)


def first_silent(pings: Pings, now_s: float, *, quiet_s: float) -> Component | None:
    """The component to look at once nothing was heard for `quiet_s`: the one that fell silent first, for the other waits for it. None
    while either still pings, and before both ever did."""
    trainer_s, orchestrator_s = pings.trainer.last_s, pings.orchestrator.last_s
    if trainer_s is None or orchestrator_s is None or now_s - max(trainer_s, orchestrator_s) < quiet_s:
        return None
    return Component.TRAINER if trainer_s < orchestrator_s else Component.ORCHESTRATOR

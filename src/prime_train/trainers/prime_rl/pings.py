"""Heartbeats of prime-rl: a GET request after each step, sent separately by its trainer and its orchestrator.

A ping does not contain the step. It shows what metrics cannot: which component stopped first, and so which of them to examine.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

PREFIX = "/hb/"


class Component(StrEnum):
    TRAINER = "trainer"
    ORCHESTRATOR = "orchestrator"


@dataclass(frozen=True)
class Heard:
    """Number of pings received from a component, and the time of the last one in seconds."""

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
    """Return the component whose heartbeats use this request path, or None if no component does."""
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
    """Return the component to examine after `quiet_s` seconds without any ping: the one that stopped first, because the other waits for it.

    Return None while either still pings, and until each has pinged at least once.
    """
    trainer_s, orchestrator_s = pings.trainer.last_s, pings.orchestrator.last_s
    if trainer_s is None or orchestrator_s is None or now_s - max(trainer_s, orchestrator_s) < quiet_s:
        return None
    return Component.TRAINER if trainer_s < orchestrator_s else Component.ORCHESTRATOR

"""When a service of the trainer has died while the trainer waits for it. Pure: the rule is all here.

A trainer ends as a whole when one of its processes ends with an error; but when a service ends with code 0, or its engine dies behind a
living front, everything else waits, and nothing but the steps tells. The rule: all of these at once,

- the trainer runs, was not told to leave, and has made its first step (before it, weights load and kernels are compiled);
- nothing is being saved (then steps stand still for another reason);
- for the service's `idle_s`, no step was made, and it was dead: a GPU that it has to itself, and on which it has held something in this
  attempt, is at 0 % and holds nothing, or its port, which answered before, refuses;
- or its probe is answered with an error, or not at all: that may pass, such as after a large update of weights, so it counts only once the
  step is also later than the slow end of the run's own steps.

What never counts: GPUs at 0 % that still hold something (a service with nothing to do is in that state); GPUs that are shared with the
trainer, or whose use is not known; a port that never answered. A service that answers for itself is alive, whatever its GPUs look like.
Where no port is known, the GPUs alone decide, and the detail says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from prime_agent.gpu.reading import EMPTY_MIB, GpuLoad
from prime_train.core.causes import Cause
from prime_train.trainers.services import Service


class Answer(StrEnum):
    """What the service's ports say."""

    UNHEARD = "unheard"
    """It never answered, or cannot be asked, or what answers may be a front without the service."""
    ALIVE = "alive"
    UNRESPONSIVE = "unresponsive"
    GONE = "gone"


@dataclass(frozen=True)
class ServiceHealth:
    """What is known of one service of this attempt."""

    service: Service
    loaded: frozenset[int] = frozenset()
    """Of its GPUs, those that have held something since the trainer was started."""
    empty: tuple[int, ...] = ()
    """Of `loaded`, those that are empty now."""
    empty_since_s: float | None = None
    answer: Answer = Answer.UNHEARD
    answer_since_s: float = 0.0
    """Since when the answer has been the same."""


Services = tuple[ServiceHealth, ...]


def sensed(services: Services, loads: tuple[GpuLoad, ...], now_s: float) -> Services:
    """After a look at all GPUs; `loads` is empty where the figures are too old to tell anything."""
    return tuple(_sensed(health, loads, now_s) for health in services)


def answered(services: Services, name: str, answer: Answer, now_s: float) -> Services:
    """After the service called `name` was asked."""
    return tuple(_answered(health, answer, now_s) if health.service.name == name else health for health in services)


def failure(services: Services, now_s: float, *, step: int, rose_s: float, slow_s: float | None, saving: bool) -> tuple[Cause, str] | None:
    """What the first service that has failed counts as, and in words; None where none has. `rose_s`: when `step` was made; `slow_s`: the
    slow end of the step times."""
    if step == 0 or saving:
        return None
    for health in services:
        words = _failure(health, now_s, still_s=now_s - rose_s, slow_s=slow_s or 0.0)
        if words:
            return health.service.cause, f"{words}, while the trainer waits at step {step} for {int(now_s - rose_s)} s"
    return None


def _sensed(health: ServiceHealth, loads: Sequence[GpuLoad], now_s: float) -> ServiceHealth:
    own = [load for load in loads if load.index in health.service.gpus]
    loaded = health.loaded | {load.index for load in own if (load.used_mib or 0.0) >= EMPTY_MIB}
    empty = tuple(load.index for load in own if load.index in loaded and load.is_empty)
    since_s = (now_s if health.empty_since_s is None else health.empty_since_s) if empty else None
    return replace(health, loaded=loaded, empty=empty, empty_since_s=since_s)


def _answered(health: ServiceHealth, answer: Answer, now_s: float) -> ServiceHealth:
    since_s = health.answer_since_s if answer is health.answer else now_s
    return replace(health, answer=answer, answer_since_s=since_s)


def _failure(health: ServiceHealth, now_s: float, *, still_s: float, slow_s: float) -> str:
    if health.answer is Answer.ALIVE:
        return ""
    for since_s, still_s_min, words in _signs(health, slow_s):
        if now_s - since_s >= health.service.idle_s and still_s >= still_s_min:
            return f"{words} for {int(now_s - since_s)} s"
    return ""


def _signs(health: ServiceHealth, slow_s: float) -> list[tuple[float, float, str]]:
    """What speaks for its death: since when, for how long no step must have been made, and the words."""
    service, since_s = health.service, health.answer_since_s
    idle_s, name = float(service.idle_s), f"{service.name}{_on(service)}"
    signs: list[tuple[float, float, str]] = []
    if health.empty_since_s is not None:
        port = "" if service.ports else " (its port is not known)"
        signs.append((health.empty_since_s, idle_s, f"{_names(health.empty)} of {service.name} at 0 % and empty{port}"))
    if health.answer is Answer.GONE:
        signs.append((since_s, idle_s, f"{name} refuses connections"))
    if health.answer is Answer.UNRESPONSIVE:
        signs.append((since_s, max(idle_s, slow_s), f"{name} fails its health probe"))
    return signs


def _names(gpus: tuple[int, ...]) -> str:
    return ("GPU " if len(gpus) == 1 else "GPUs ") + ", ".join(map(str, gpus))


def _on(service: Service) -> str:
    return f" on {_names(service.gpus)}" if service.gpus else ""

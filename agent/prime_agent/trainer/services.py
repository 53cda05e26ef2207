"""The rule for when a service of the trainer has failed while the trainer waits for it. All functions are
pure.

All processes of a trainer end if one of them ends with an error. But if a service ends with code 0, or its
engine fails behind a running front end, everything else waits, and only the missing steps show it. The rule
requires all of these at once:

- the trainer runs, was not asked to stop, and has made its first step (before it, weights are loaded and
  kernels compiled);
- nothing is being saved, which would be another reason for steps to stand still;
- for the service's `idle_s`, no step was made and the service was dead: a GPU that it alone uses, and on
  which it has held memory in this attempt, is at 0 % and holds nothing, or its port, which responded before,
  refuses connections;
- or its probe gets an error or no response: that may be temporary, for example after a large update of
  weights, so it counts only once the step also takes longer than the slow end of the run's own steps.

These never count: GPUs at 0 % that still hold memory (normal for a service with nothing to do); GPUs shared
with the trainer, or whose use is unknown; a port that never responded. A service that responds itself is
alive, whatever the state of its GPUs. If no port is known, only the GPUs decide, and the detail says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from prime_agent.gpu.reading import EMPTY_MIB, GpuLoad
from prime_train.spec.causes import Cause
from prime_train.trainers.services import Service


class ProbeReply(StrEnum):
    """State of a service, judged by its ports."""

    UNHEARD = "unheard"
    """The port never responded, cannot be queried, or may belong to a front end without the service."""
    ALIVE = "alive"
    UNRESPONSIVE = "unresponsive"
    GONE = "gone"


@dataclass(frozen=True)
class ServiceHealth:
    """Health of one service in this attempt."""

    service: Service
    loaded: frozenset[int] = frozenset()
    """GPUs that only this service uses and that have held memory since the trainer was started."""
    empty: tuple[int, ...] = ()
    """The GPUs in `loaded` that hold no memory now."""
    empty_since_s: float | None = None
    answer: ProbeReply = ProbeReply.UNHEARD
    answer_since_s: float = 0.0
    """Time at which the current `answer` was first observed."""


Services = tuple[ServiceHealth, ...]


def sensed(services: Services, loads: tuple[GpuLoad, ...], now_s: float) -> Services:
    """Return the services after a reading of all GPUs; `loads` is empty if the figures are too old to count
    as evidence.
    """
    return tuple(_sensed(health, loads, now_s) for health in services)


def answered(services: Services, name: str, answer: ProbeReply, now_s: float) -> Services:
    """Return the services with this answer of the service called `name` recorded."""
    return tuple(
        _answered(health, answer, now_s) if health.service.name == name else health for health in services
    )


def failure(
    services: Services, now_s: float, *, step: int, rose_s: float, slow_s: float | None, saving: bool
) -> tuple[Cause, str] | None:
    """Return the cause and description of the first service that has failed, or None. `rose_s` is when `step`
    was made; `slow_s` is the slow end of the step durations in seconds.
    """
    if step == 0 or saving:
        return None
    for health in services:
        words = _failure(health, now_s, still_s=now_s - rose_s, slow_s=slow_s or 0.0)
        if words:
            return (
                health.service.cause,
                f"{words}, while the trainer has waited at step {step} for {int(now_s - rose_s)} s",
            )
    return None


def _sensed(health: ServiceHealth, loads: Sequence[GpuLoad], now_s: float) -> ServiceHealth:
    own = [load for load in loads if load.index in health.service.gpus]
    loaded = health.loaded | {load.index for load in own if (load.used_mib or 0.0) >= EMPTY_MIB}
    empty = tuple(load.index for load in own if load.index in loaded and load.is_empty)
    since_s = (now_s if health.empty_since_s is None else health.empty_since_s) if empty else None
    return replace(health, loaded=loaded, empty=empty, empty_since_s=since_s)


def _answered(health: ServiceHealth, answer: ProbeReply, now_s: float) -> ServiceHealth:
    since_s = health.answer_since_s if answer is health.answer else now_s
    return replace(health, answer=answer, answer_since_s=since_s)


def _failure(health: ServiceHealth, now_s: float, *, still_s: float, slow_s: float) -> str:
    if health.answer is ProbeReply.ALIVE:
        return ""
    for since_s, still_s_min, words in _signs(health, slow_s):
        if now_s - since_s >= health.service.idle_s and still_s >= still_s_min:
            return f"{words} for {int(now_s - since_s)} s"
    return ""


def _signs(health: ServiceHealth, slow_s: float) -> list[tuple[float, float, str]]:
    """Return the signs of failure: since when, the seconds without a step that are required, and the
    description.
    """
    service, since_s = health.service, health.answer_since_s
    idle_s, name = float(service.idle_s), f"{service.name}{_on(service)}"
    signs: list[tuple[float, float, str]] = []
    if health.empty_since_s is not None:
        port = "" if service.ports else " (its port is not known)"
        signs.append(
            (
                health.empty_since_s,
                idle_s,
                f"{_names(health.empty)} of {service.name} at 0 % with empty memory{port}",
            )
        )
    if health.answer is ProbeReply.GONE:
        signs.append((since_s, idle_s, f"{name} refuses connections"))
    if health.answer is ProbeReply.UNRESPONSIVE:
        signs.append((since_s, max(idle_s, slow_s), f"{name} fails its health probe"))
    return signs


def _names(gpus: tuple[int, ...]) -> str:
    return ("GPU " if len(gpus) == 1 else "GPUs ") + ", ".join(map(str, gpus))


def _on(service: Service) -> str:
    return f" on {_names(service.gpus)}" if service.gpus else ""

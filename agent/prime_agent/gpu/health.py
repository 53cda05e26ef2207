"""Rules for when a machine's GPUs are broken, and when they are idle although the trainer should be using
them. All functions are pure.

A GPU is broken (GPU_HARDWARE, which is permanent) if it
- is lost according to the driver, or no longer listed by it;
- cannot be queried for `UNASKABLE_S` seconds, although that worked before;
- counts uncorrected memory errors that it did not have at this attempt's first reading (errors under an
  earlier tenant do not count);
- has come to need a repair of its memory, or has failed one, since then;
- reports an Xid that requires a reset (`gpu/xids.py`).

A machine is idle if every GPU is at 0 % and holds no memory, after the first step was made. Before that,
weights may still be loading from disk or network, which `health.first_step_s` limits. A GPU without figures
proves nothing, nor do figures that are old because the driver hangs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from prime_agent.gpu.reading import GpuLoad, GpuSnapshot
from prime_agent.gpu.xids import is_broken, words

UNASKABLE_S = 60.0
FRESH_S = 30.0
"""Age in seconds up to which figures are used as evidence of the present state."""


@dataclass(frozen=True)
class GpuHealth:
    """Health of all GPUs. `first` holds each GPU as it was at its first reading."""

    snapshot: GpuSnapshot = field(default_factory=GpuSnapshot)
    first: tuple[GpuLoad, ...] = ()
    idle_since_s: float | None = None
    unaskable_since_s: float | None = None
    fullest: GpuLoad | None = None
    """The GPU with the most memory in use at any reading of this attempt, as it was then; None: not known."""
    fault: str = ""
    """Description of what is broken; "" if nothing is."""

    @property
    def is_fresh(self) -> bool:
        """Whether the figures are recent enough to be used as evidence."""
        return not self.snapshot.problem and self.snapshot.age_s <= FRESH_S


def seen(health: GpuHealth, snapshot: GpuSnapshot, now_s: float, *, training: bool) -> GpuHealth:
    """Return the health after a reading. `training` says that the trainer runs and has made its first
    step.
    """
    missed_before = bool(health.snapshot.loads) and len(health.snapshot.loads) < len(health.first)
    known = [
        load for load in (health.fullest, *snapshot.loads) if load is not None and load.used_mib is not None
    ]
    fullest = max(known, key=lambda load: load.used_mib or 0.0, default=None)
    health = replace(health, snapshot=snapshot, fullest=fullest)
    if not health.is_fresh or not snapshot.loads:
        # An Xid remains valid evidence however old the figures are.
        return replace(
            health,
            idle_since_s=None,
            unaskable_since_s=None,
            fault=health.fault or next(_reported(snapshot), ""),
        )
    unaskable = [load for load in _unaskable(health, snapshot) if not load.lost]
    since_s = (now_s if health.unaskable_since_s is None else health.unaskable_since_s) if unaskable else None
    overlong = since_s is not None and now_s - since_s >= UNASKABLE_S
    fault = health.fault or next(
        _faults(health, snapshot, unaskable if overlong else [], missed_before=missed_before), ""
    )
    idle = training and all(load.is_empty for load in snapshot.loads)
    idle_since_s = (now_s if health.idle_since_s is None else health.idle_since_s) if idle else None
    return replace(
        health,
        first=_with_new(health, snapshot),
        unaskable_since_s=since_s,
        fault=fault,
        idle_since_s=idle_since_s,
    )


def idle_s(health: GpuHealth, now_s: float) -> int:
    """Return the seconds for which all GPUs have been idle."""
    return 0 if health.idle_since_s is None else int(now_s - health.idle_since_s)


def _faults(
    health: GpuHealth, snapshot: GpuSnapshot, unaskable: list[GpuLoad], *, missed_before: bool
) -> Iterator[str]:
    """Yield descriptions of the faults, the most certain first. A GPU that is not listed counts only if one
    was missing in the previous reading too.
    """
    before = {load.index: load for load in health.first}
    for load in snapshot.loads:
        if load.lost:
            yield f"{_title(before.get(load.index, load))} is lost: {load.problem}"
    for load in _gone(health, snapshot) if missed_before else []:
        yield (
            f"{_title(load)} is no longer listed by the driver: it lists {len(snapshot.loads)} GPUs, and "
            f"listed {len(health.first)} before"
        )
    yield from _reported(snapshot)
    for load in snapshot.loads:
        if load.index in before:
            yield from _worn(before[load.index], load)
    for load in unaskable:
        yield f"{_title(before.get(load.index, load))} can no longer be queried: {load.problem}"


def _reported(snapshot: GpuSnapshot) -> Iterator[str]:
    return (words(xid) for xid in snapshot.xids if is_broken(xid))


def _worn(before: GpuLoad, load: GpuLoad) -> Iterator[str]:
    new = (load.uncorrected or 0) - (before.uncorrected or 0)
    if before.uncorrected is not None and new > 0:
        yield f"{_title(load)} has {new} new memory errors that ECC could not correct"
    if load.repair_failed and before.repair_failed is False:
        yield f"{_title(load)} failed to take bad memory out of use"
    if load.repair_pending and before.repair_pending is False:
        yield f"{_title(load)} has bad memory that only a reset takes out of use"


def _gone(health: GpuHealth, snapshot: GpuSnapshot) -> list[GpuLoad]:
    """Return the GPUs that the driver no longer lists.

    They are identified by UUID where possible, because the indexes of later GPUs move up.
    """
    if len(snapshot.loads) >= len(health.first):
        return []
    uuids, indexes = {load.uuid for load in snapshot.loads}, {load.index for load in snapshot.loads}
    return [
        load for load in health.first if (load.uuid not in uuids if load.uuid else load.index not in indexes)
    ]


def _unaskable(health: GpuHealth, snapshot: GpuSnapshot) -> list[GpuLoad]:
    """Return the GPUs that could be queried at their first reading, but not now."""
    known = {load.index for load in health.first if not load.problem}
    return [load for load in snapshot.loads if load.problem and load.index in known]


def _with_new(health: GpuHealth, snapshot: GpuSnapshot) -> tuple[GpuLoad, ...]:
    known = {load.index for load in health.first}
    return (*health.first, *(load for load in snapshot.loads if load.index not in known))


def _title(load: GpuLoad) -> str:
    return load.title + (f", {load.uuid}," if load.uuid else "")

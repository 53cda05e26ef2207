"""When a machine's GPUs are broken, and when they are idle though the trainer should be using them. Pure: the rules are all here.

Broken (GPU_HARDWARE, and it stays so) is a GPU that
- the driver calls lost, or that it does not list any more;
- cannot be asked for `UNASKABLE_S`, though it could before;
- counts uncorrected memory errors that it did not count when this attempt first looked: what happened under an earlier tenant is over;
- has come to wait for a repair of its memory, or has failed one, since then;
- reports an Xid that needs a reset (`gpu_xids`).

Idle is a machine whose every GPU is at 0 % and holds nothing, after the first step was made. Before that, weights may still be on their
way from the disk or the network, and `health.first_step_s` is the limit for it. A GPU that cannot tell proves nothing, and neither do
figures that are old because the driver hangs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from prime_agent.gpu.reading import GpuLoad, GpuSnapshot
from prime_agent.gpu.xids import is_broken, words

UNASKABLE_S = 60.0
FRESH_S = 30.0
"""Figures older than this say nothing about now."""


@dataclass(frozen=True)
class GpuHealth:
    """`first`: each GPU as it was when it was first seen."""

    snapshot: GpuSnapshot = field(default_factory=GpuSnapshot)
    first: tuple[GpuLoad, ...] = ()
    idle_since_s: float | None = None
    unaskable_since_s: float | None = None
    fault: str = ""
    """What is broken, in words."""

    @property
    def is_fresh(self) -> bool:
        return not self.snapshot.trouble and self.snapshot.age_s <= FRESH_S


def seen(health: GpuHealth, snapshot: GpuSnapshot, now_s: float, *, training: bool) -> GpuHealth:
    """After a look. `training`: the trainer runs and has made its first step."""
    missed_before = bool(health.snapshot.loads) and len(health.snapshot.loads) < len(health.first)
    health = replace(health, snapshot=snapshot)
    if not health.is_fresh or not snapshot.loads:
        # What an Xid tells is true however old the figures are.
        return replace(health, idle_since_s=None, unaskable_since_s=None, fault=health.fault or next(_reported(snapshot), ""))
    unaskable = [load for load in _unaskable(health, snapshot) if not load.lost]
    since_s = (now_s if health.unaskable_since_s is None else health.unaskable_since_s) if unaskable else None
    overlong = since_s is not None and now_s - since_s >= UNASKABLE_S
    fault = health.fault or next(_faults(health, snapshot, unaskable if overlong else [], missed_before=missed_before), "")
    idle = training and all(load.is_empty for load in snapshot.loads)
    idle_since_s = (now_s if health.idle_since_s is None else health.idle_since_s) if idle else None
    return replace(health, first=_with_new(health, snapshot), unaskable_since_s=since_s, fault=fault, idle_since_s=idle_since_s)


def idle_s(health: GpuHealth, now_s: float) -> int:
    """For how long all GPUs have been idle."""
    return 0 if health.idle_since_s is None else int(now_s - health.idle_since_s)


def _faults(health: GpuHealth, snapshot: GpuSnapshot, unaskable: list[GpuLoad], *, missed_before: bool) -> Iterator[str]:
    """What is broken, the surest first. A GPU that is not listed counts when it was missed in the look before, too."""
    before = {load.index: load for load in health.first}
    for load in snapshot.loads:
        if load.lost:
            yield f"{_title(before.get(load.index, load))} is lost: {load.trouble}"
    for load in _gone(health, snapshot) if missed_before else []:
        yield f"{_title(load)} is not there any more: the driver lists {len(snapshot.loads)} GPUs, and listed {len(health.first)}"
    yield from _reported(snapshot)
    for load in snapshot.loads:
        if load.index in before:
            yield from _worn(before[load.index], load)
    for load in unaskable:
        yield f"{_title(before.get(load.index, load))} cannot be asked any more: {load.trouble}"


def _reported(snapshot: GpuSnapshot) -> Iterator[str]:
    return (words(xid) for xid in snapshot.xids if is_broken(xid))


def _worn(before: GpuLoad, load: GpuLoad) -> Iterator[str]:
    new = (load.uncorrected or 0) - (before.uncorrected or 0)
    if before.uncorrected is not None and new > 0:
        yield f"{_title(load)} has {new} new memory errors that ECC could not correct"
    if load.repair_failed and before.repair_failed is False:
        yield f"{_title(load)} has failed to take bad memory out of use"
    if load.repair_pending and before.repair_pending is False:
        yield f"{_title(load)} has found bad memory, which only a reset takes out of use"


def _gone(health: GpuHealth, snapshot: GpuSnapshot) -> list[GpuLoad]:
    """GPUs the driver does not list any more. Those behind one that is gone move up, so the index does not tell which it was."""
    if len(snapshot.loads) >= len(health.first):
        return []
    uuids, indexes = {load.uuid for load in snapshot.loads}, {load.index for load in snapshot.loads}
    return [load for load in health.first if (load.uuid not in uuids if load.uuid else load.index not in indexes)]


def _unaskable(health: GpuHealth, snapshot: GpuSnapshot) -> list[GpuLoad]:
    """GPUs that could be asked when they were first seen, and cannot now."""
    known = {load.index for load in health.first if not load.trouble}
    return [load for load in snapshot.loads if load.trouble and load.index in known]


def _with_new(health: GpuHealth, snapshot: GpuSnapshot) -> tuple[GpuLoad, ...]:
    known = {load.index for load in health.first}
    return (*health.first, *(load for load in snapshot.loads if load.index not in known))


def _title(load: GpuLoad) -> str:
    return load.title + (f", {load.uuid}," if load.uuid else "")

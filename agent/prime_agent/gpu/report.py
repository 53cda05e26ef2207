"""The GPU section of a heartbeat: a few figures over all GPUs, however many there are."""

from collections.abc import Iterable
from statistics import fmean

from prime_agent.gpu.reading import GpuLoad, GpuSnapshot
from prime_agent.gpu.xids import words
from prime_train.core.wire import GPU_NOTE_CHARS_MAX, Gpus


def mean_util_pct(loads: tuple[GpuLoad, ...]) -> float | None:
    """Return the mean utilisation of the GPUs in percent; None if it is unknown."""
    known = _known(load.util_pct for load in loads)
    return round(fmean(known), 1) if known else None


def used_mib(loads: tuple[GpuLoad, ...]) -> float | None:
    """Return the memory in use on all GPUs in MiB; None if it is unknown."""
    known = _known(load.used_mib for load in loads)
    return round(sum(known), 1) if known else None


def report_gpus(snapshot: GpuSnapshot, fullest: GpuLoad | None = None) -> Gpus | None:
    """Return the section for the heartbeat; None if there is nothing to report. `fullest`: the GPU that had the most memory in use so
    far."""
    loads = snapshot.loads
    if not loads and not snapshot.problem:
        return None
    busy = _known(load.util_pct for load in loads)
    powers = _known(load.power_w for load in loads)
    return Gpus(
        count=len(loads),
        idle=sum(load.is_empty for load in loads),
        util_low_pct=_percent(min(busy)) if busy else None,
        util_high_pct=_percent(max(busy)) if busy else None,
        hottest_c=max((load.temperature_c for load in loads if load.temperature_c is not None), default=None),
        power_w=round(sum(powers), 1) if powers else None,
        memory_peak_mib=_size(fullest.used_mib) if fullest is not None else None,
        memory_mib=_size(fullest.total_mib) if fullest is not None else None,
        age_s=int(snapshot.age_s),
        note=_note(snapshot)[:GPU_NOTE_CHARS_MAX],
    )


def _note(snapshot: GpuSnapshot) -> str:
    """Return a note for people: why there are no new figures, what slows a GPU down, and the newest Xid."""
    slowed = [f"{load.title} is throttled by {' and '.join(load.slowed_by)}" for load in snapshot.loads if load.slowed_by]
    silent = [f"{load.title}: {load.problem}" for load in snapshot.loads if load.problem]
    return "; ".join([*filter(None, [snapshot.problem]), *silent, *map(words, snapshot.xids[-1:]), *slowed])


def _percent(value: float) -> float:
    return round(min(100.0, max(0.0, value)), 1)


def _size(value: float | None) -> float | None:
    return None if value is None else round(max(0.0, value), 1)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]

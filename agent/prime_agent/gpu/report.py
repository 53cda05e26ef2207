"""The figures of GPUs for others: a few over all of them for a heartbeat, and a table of everything known for
people."""

from collections.abc import Iterable
from statistics import fmean

from prime_agent.gpu.reading import GpuLoad, GpuSnapshot
from prime_agent.gpu.xids import words
from prime_train.runs.wire import GPU_NOTE_CHARS_MAX, Gpus


def mean_util_pct(loads: tuple[GpuLoad, ...]) -> float | None:
    """Return the mean utilisation of the GPUs in percent; None if it is unknown."""
    known = _known(load.util_pct for load in loads)
    return round(fmean(known), 1) if known else None


def used_mib(loads: tuple[GpuLoad, ...]) -> float | None:
    """Return the memory in use on all GPUs in MiB; None if it is unknown."""
    known = _known(load.used_mib for load in loads)
    return round(sum(known), 1) if known else None


def report_gpus(snapshot: GpuSnapshot, fullest: GpuLoad | None = None) -> Gpus | None:
    """Return the section for the heartbeat; None if there is nothing to report. `fullest`: the GPU that had
    the most memory in use so far.
    """
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
    slowed = [
        f"{load.title} is throttled by {' and '.join(load.slowed_by)}"
        for load in snapshot.loads
        if load.slowed_by
    ]
    silent = [f"{load.title}: {load.problem}" for load in snapshot.loads if load.problem]
    return "; ".join([*filter(None, [snapshot.problem]), *silent, *map(words, snapshot.xids[-1:]), *slowed])


def _percent(value: float) -> float:
    return round(min(100.0, max(0.0, value)), 1)


def _size(value: float | None) -> float | None:
    return None if value is None else round(max(0.0, value), 1)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


HEAD = ("GPU", "name", "busy", "memory", "temperature", "power", "slowed by", "ECC errors", "repair", "uuid")


def table(snapshot: GpuSnapshot) -> str:
    lines = _aligned([HEAD, *map(_row, snapshot.loads)]) if snapshot.loads else ["no GPU was observed"]
    if snapshot.loads and snapshot.age_s >= 1:
        lines.append(f"these values are {snapshot.age_s:.0f} s old")
    lines += [snapshot.problem] if snapshot.problem else []
    lines += [words(xid) for xid in snapshot.xids]
    return "\n".join(lines + ([snapshot.deaf] if snapshot.deaf else []))


def _row(load: GpuLoad) -> tuple[str, ...]:
    if load.problem:
        return (str(load.index), load.name or "-", load.problem)
    return (
        str(load.index),
        load.name or "-",
        _figure(load.util_pct, "%"),
        _of(load.used_mib, load.total_mib, "MiB"),
        _figure(load.temperature_c, "C"),
        _of(load.power_w, load.power_limit_w, "W"),
        " and ".join(load.slowed_by) or "-",
        _figure(load.uncorrected, "not corrected"),
        _repair(load),
        load.uuid or "-",
    )


def _repair(load: GpuLoad) -> str:
    if load.repair_failed:
        return "failed"
    return "?" if load.repair_pending is None else "pending" if load.repair_pending else "none"


def _figure(value: float | None, unit: str) -> str:
    return "?" if value is None else f"{value:.0f} {unit}"


def _of(value: float | None, total: float | None, unit: str) -> str:
    return (
        _figure(value, unit)
        if total is None
        else f"{'?' if value is None else f'{value:.0f}'} of {total:.0f} {unit}"
    )


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the rows with aligned columns; the last cell of a row may have any length."""
    widths = [max((len(row[at]) for row in rows if at < len(row) - 1), default=0) for at in range(len(HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]

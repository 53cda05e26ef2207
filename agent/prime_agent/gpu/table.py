"""A table for people of everything known about the GPUs."""

from prime_agent.gpu.reading import GpuLoad, GpuSnapshot
from prime_agent.gpu.xids import words

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
    return _figure(value, unit) if total is None else f"{'?' if value is None else f'{value:.0f}'} of {total:.0f} {unit}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the rows with aligned columns; the last cell of a row may have any length."""
    widths = [max((len(row[at]) for row in rows if at < len(row) - 1), default=0) for at in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]

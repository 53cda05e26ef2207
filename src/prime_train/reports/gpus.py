"""Reports what the GPUs of a run's machine do, from its last heartbeat."""

from dataclasses import dataclass

from prime_train.core.text.formatting import size, span
from prime_train.ports import RunRecord

OLD_S = 120
"""Minimum age in seconds at which figures are shown with their age. For younger ones the age of the last heartbeat, which is also shown, is
enough."""


@dataclass(frozen=True)
class GpusNow:
    """The state of all GPUs of a machine. None means not reported. `age_s` is the age of the figures; `idle` counts GPUs at 0 % that hold
    no memory."""

    count: int
    idle: int
    util_low_pct: float | None
    util_high_pct: float | None
    util_mean_pct: float | None
    memory_bytes: int | None
    """Memory in use on all GPUs together."""
    hottest_c: int | None
    power_w: float | None
    age_s: int
    note: str


def gpus_now(record: RunRecord, now_s: int) -> GpusNow | None:
    """Return the state of the GPUs; None if no GPU was requested, before the first heartbeat, and when the run is over."""
    run, lease = record.run, record.lease
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    if heartbeat is None or heartbeat.gpus is None or lease.heartbeat_s is None or run.is_over:
        return None
    reported = heartbeat.gpus
    return GpusNow(
        count=reported.count,
        idle=reported.idle,
        util_low_pct=reported.util_low_pct,
        util_high_pct=reported.util_high_pct,
        util_mean_pct=heartbeat.gpu_util_pct,
        memory_bytes=round(heartbeat.gpu_mem_mib * 2**20) if heartbeat.gpu_mem_mib is not None else None,
        hottest_c=reported.hottest_c,
        power_w=reported.power_w,
        age_s=reported.age_s + max(0, now_s - lease.heartbeat_s),
        note=reported.note,
    )


def fact(found: GpusNow) -> str:
    """Return the state as text, such as "8, 35 to 98 % busy, 67 % on average, 2 idle, 312.5 GiB in use, hottest 74 C, 4200 W", followed by
    the note on anything unusual."""
    parts = [str(found.count)] if found.count else []
    if found.util_low_pct is not None and found.util_high_pct is not None:
        low, high = round(found.util_low_pct), round(found.util_high_pct)
        parts.append(f"{high} % busy" if low == high else f"{low} to {high} % busy")
        parts += [f"{found.util_mean_pct:.0f} % on average"] if found.util_mean_pct is not None and low != high else []
    parts += [f"{found.idle} idle"] if found.idle else []
    parts += [f"{size(found.memory_bytes)} in use"] if found.memory_bytes is not None else []
    parts += [f"hottest {found.hottest_c} C"] if found.hottest_c is not None else []
    parts += [f"{found.power_w:.0f} W"] if found.power_w is not None else []
    parts += [f"{span(found.age_s)} ago"] if found.age_s >= OLD_S else []
    return "; ".join(filter(None, [", ".join(parts), found.note]))

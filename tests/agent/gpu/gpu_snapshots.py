"""GPUs as the agent reads them, for tests of its conclusions."""

from dataclasses import replace
from typing import Any

from prime_agent import events as v
from prime_agent.gpu.reading import GpuLoad, GpuSnapshot, Xid

BUSY = GpuLoad(
    name="H100",
    util_pct=90.0,
    used_mib=40_000.0,
    total_mib=81_559.0,
    temperature_c=60,
    power_w=350.0,
    power_limit_w=700.0,
    uncorrected=0,
    repair_pending=False,
    repair_failed=False,
)
EMPTY = replace(BUSY, util_pct=0.0, used_mib=4.0)
WAITING = replace(BUSY, util_pct=0.0)
"""A GPU as between rollouts: at 0 %, with weights in memory."""

LOST = GpuLoad(problem="GPU is lost", lost=True)


def snapshot(*loads: GpuLoad, **more: Any) -> GpuSnapshot:
    """Return a reading of one machine, in which each GPU has its own index."""
    placed = (
        replace(load, index=index, uuid=load.uuid or f"GPU-{index}") for index, load in enumerate(loads)
    )
    return GpuSnapshot(tuple(placed), **more)


def sensed(*loads: GpuLoad, xids: tuple[Xid, ...] = ()) -> v.Sensed:
    return v.Sensed(100.0, snapshot(*loads, xids=xids))

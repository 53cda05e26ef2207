"""What is known of a machine's GPUs: the figures of each, the driver's own words where something is wrong, and how old all that is."""

from dataclasses import dataclass
from typing import Protocol

EMPTY_MIB = 64.0
"""Less in use than this is nothing: a process that has begun to compute holds some hundred MiB, the driver by itself a few at most."""


@dataclass(frozen=True)
class GpuLoad:
    """One GPU. None: its board or driver does not tell. Power in watts, memory in MiB."""

    index: int = 0
    name: str = ""
    uuid: str = ""
    util_pct: float | None = None
    used_mib: float | None = None
    total_mib: float | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    slowed_by: tuple[str, ...] = ()
    """What holds its clock down, but for the work itself."""
    uncorrected: int | None = None
    """Memory errors that ECC could not correct, since the driver was loaded."""
    repair_pending: bool | None = None
    """Bad memory waits to be taken out of use (a row remapped, a page retired) until the GPU is reset."""
    repair_failed: bool | None = None
    """Bad memory could not be taken out of use: no spare rows are left."""
    trouble: str = ""
    """Why it cannot be asked, in the driver's words."""
    lost: bool = False
    """It has left the bus, or will not work again before it is reset."""

    @property
    def is_empty(self) -> bool:
        """At 0 %, and nobody holds memory on it. What cannot be told is not empty."""
        return self.util_pct == 0 and self.used_mib is not None and self.used_mib < EMPTY_MIB

    @property
    def title(self) -> str:
        return f"GPU {self.index}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True)
class Xid:
    """An error that the driver reported by its number. `gpu`: the index; None where it does not say."""

    gpu: int | None
    code: int


@dataclass(frozen=True)
class GpuSnapshot:
    """What is known now. `trouble`: why newer figures cannot be had; `age_s`: how old these are. `deaf`: why Xids are not heard."""

    loads: tuple[GpuLoad, ...] = ()
    age_s: float = 0.0
    trouble: str = ""
    xids: tuple[Xid, ...] = ()
    """All that were heard, oldest first, up to a limit."""
    deaf: str = ""


class Gpus(Protocol):
    def look(self, wait_s: float) -> GpuSnapshot:
        """What each GPU does now, or what was known last if that takes longer than `wait_s`. From any thread; raises nothing."""


class NoGpus:
    """For jobs that ask for none."""

    def look(self, wait_s: float) -> GpuSnapshot:
        return GpuSnapshot()

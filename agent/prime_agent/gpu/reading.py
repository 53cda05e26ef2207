"""A reading of a machine's GPUs: the figures of each, the driver's error messages, and the age of the figures."""

from dataclasses import dataclass
from typing import Protocol

EMPTY_MIB = 64.0
"""Memory in use below this counts as none: a process that computes holds some hundred MiB, the driver alone a few at most."""


@dataclass(frozen=True)
class GpuLoad:
    """The figures of one GPU. A figure is None if board or driver does not provide it. Power is in watts, memory in MiB."""

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
    """Reasons for a reduced clock, other than the work itself."""
    uncorrected: int | None = None
    """Memory errors that ECC could not correct, since the driver was loaded."""
    repair_pending: bool | None = None
    """Whether bad memory waits for a reset of the GPU to be taken out of use (a row remapped, a page retired)."""
    repair_failed: bool | None = None
    """Whether bad memory could not be taken out of use, because no spare rows are left."""
    problem: str = ""
    """The driver's error message if the GPU cannot be queried; otherwise ""."""
    lost: bool = False
    """Whether the GPU has left the bus, or will not work again before a reset."""

    @property
    def is_empty(self) -> bool:
        """Whether the GPU is at 0 % and no process holds memory on it; False if that is unknown."""
        return self.util_pct == 0 and self.used_mib is not None and self.used_mib < EMPTY_MIB

    @property
    def title(self) -> str:
        return f"GPU {self.index}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True)
class Xid:
    """An error that the driver reported by its number. `gpu` is the index of the GPU; None if it is unknown."""

    gpu: int | None
    code: int


@dataclass(frozen=True)
class GpuSnapshot:
    """The latest reading. `age_s` is its age in seconds, `problem` the reason why there is none newer, and `deaf` the reason why Xids are
    not received."""

    loads: tuple[GpuLoad, ...] = ()
    age_s: float = 0.0
    problem: str = ""
    xids: tuple[Xid, ...] = ()
    """All Xids received, oldest first, up to a limit."""
    deaf: str = ""


class Gpus(Protocol):
    def look(self, wait_s: float) -> GpuSnapshot:
        """Return the current figures of each GPU, or the last known ones if a reading takes longer than `wait_s` seconds. Thread-safe;
        raises nothing."""


class NoGpus:
    """Substitute for jobs that request no GPUs."""

    def look(self, wait_s: float) -> GpuSnapshot:
        return GpuSnapshot()

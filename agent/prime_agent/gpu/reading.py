"""A reading of a machine's GPUs: the figures of each, the driver's error messages, and the age of the
figures.

They are read through NVIDIA's management library (NVML). Boards and drivers differ in the figures they
provide, so each one is queried separately and is None if refused. Only a lost GPU is not queried further,
because the driver may then take long over each query.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

EMPTY_MIB = 64.0
"""Memory in use below this counts as none: a process that computes holds some hundred MiB, the driver alone a
few at most.
"""


@dataclass(frozen=True)
class GpuLoad:
    """The figures of one GPU. A figure is None if board or driver does not provide it. Power is in watts,
    memory in MiB.
    """

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
    """Whether bad memory waits for a reset of the GPU to be taken out of use (a row remapped, a page
    retired).
    """
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
    """An error that the driver reported by its number. `gpu` is the index of the GPU; None if it is
    unknown.
    """

    gpu: int | None
    code: int


@dataclass(frozen=True)
class GpuSnapshot:
    """The latest reading. `age_s` is its age in seconds, `problem` the reason why there is none newer, and
    `deaf` the reason why Xids are not received.
    """

    loads: tuple[GpuLoad, ...] = ()
    age_s: float = 0.0
    problem: str = ""
    xids: tuple[Xid, ...] = ()
    """All Xids received, oldest first, up to a limit."""
    deaf: str = ""


class GpuReader(Protocol):
    def look(self, wait_s: float) -> GpuSnapshot:
        """Return the current figures of each GPU, or the last known ones if a reading takes longer than
        `wait_s` seconds. Thread-safe; raises nothing.
        """


class NoGpus:
    """Substitute for jobs that request no GPUs."""

    def look(self, wait_s: float) -> GpuSnapshot:
        return GpuSnapshot()


T = TypeVar("T")

SLOWDOWNS: dict[int, str] = {
    0x08: "the hardware",
    0x20: "heat",
    0x40: "heat (hardware)",
    0x80: "the power supply",
}
"""Causes of a slowed-down GPU, by their bit in the driver's clock event reasons. The power cap is left out,
because these boards normally run at it under full load."""


def read(nvml: Any) -> tuple[GpuLoad, ...]:
    """Return the figures of all GPUs. Raises NVMLError if the driver cannot be queried at all."""
    # NVML counts its users, so this costs nothing if it is initialised already.
    nvml.nvmlInit()
    loads = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            loads.append(_load(nvml, index, nvml.nvmlDeviceGetHandleByIndex(index)))
        except nvml.NVMLError as error:
            loads.append(GpuLoad(index, problem=str(error), lost=error.value in _lost(nvml)))
    return tuple(loads)


def _lost(nvml: Any) -> tuple[int, ...]:
    return nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED, nvml.NVML_ERROR_INSUFFICIENT_POWER


def _load(nvml: Any, index: int, handle: Any) -> GpuLoad:
    def value_or_none(question: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return question(handle, *arguments)
        except nvml.NVMLError as error:
            if error.value in _lost(nvml):
                raise
            return None

    usage = value_or_none(nvml.nvmlDeviceGetUtilizationRates)
    # Version 2 excludes memory that the driver reserves, so that an unused GPU has none in use.
    memory = value_or_none(nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2) or value_or_none(
        nvml.nvmlDeviceGetMemoryInfo
    )
    errors = value_or_none(
        nvml.nvmlDeviceGetTotalEccErrors, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    )
    reasons = value_or_none(nvml.nvmlDeviceGetCurrentClocksEventReasons)
    if reasons is None:
        reasons = value_or_none(nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    rows = value_or_none(nvml.nvmlDeviceGetRemappedRows)
    pages = value_or_none(nvml.nvmlDeviceGetRetiredPagesPendingStatus) if rows is None else None
    return GpuLoad(
        index=index,
        name=_text(value_or_none(nvml.nvmlDeviceGetName)),
        uuid=_text(value_or_none(nvml.nvmlDeviceGetUUID)),
        util_pct=None if usage is None else float(usage.gpu),
        used_mib=None if memory is None else memory.used / 2**20,
        total_mib=None if memory is None else memory.total / 2**20,
        temperature_c=value_or_none(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        power_w=_watts(value_or_none(nvml.nvmlDeviceGetPowerUsage)),
        power_limit_w=_watts(value_or_none(nvml.nvmlDeviceGetEnforcedPowerLimit)),
        slowed_by=tuple(words for bit, words in SLOWDOWNS.items() if (reasons or 0) & bit),
        uncorrected=errors,
        repair_pending=bool(rows[2]) if rows is not None else None if pages is None else bool(pages),
        repair_failed=bool(rows[3]) if rows is not None else None,
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(name: str | bytes | None) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name or ""

"""Reads all GPUs through NVIDIA's management library (NVML).

Boards and drivers differ in the figures they provide, so each one is queried separately and is None if refused. Only a lost GPU is not
queried further, because the driver may then take long over each query.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from prime_agent.gpu.reading import GpuLoad

T = TypeVar("T")

SLOWDOWNS: dict[int, str] = {
    0x08: "the hardware",
    0x20: "heat",
    0x40: "heat (hardware)",
    0x80: "the power supply",
}
"""Causes of a slowed-down GPU, by their bit in the driver's clock event reasons. The power cap is left out, because these boards normally
run at it under full load."""


def read(nvml: Any) -> tuple[GpuLoad, ...]:
    """Return the figures of all GPUs. Raises NVMLError if the driver cannot be queried at all."""
    # NVML counts its users, so this costs nothing if it is initialised already.
    nvml.nvmlInit()
    return tuple(_one(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))


def _one(nvml: Any, index: int) -> GpuLoad:
    try:
        return _load(nvml, index, nvml.nvmlDeviceGetHandleByIndex(index))
    except nvml.NVMLError as error:
        return GpuLoad(index, problem=str(error), lost=error.value in _lost(nvml))


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
    memory = value_or_none(nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2) or value_or_none(nvml.nvmlDeviceGetMemoryInfo)
    errors = value_or_none(nvml.nvmlDeviceGetTotalEccErrors, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
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

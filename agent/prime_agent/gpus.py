"""What the GPUs do, through NVIDIA's management library. Where that is missing or fails, the answer says so; nothing is raised."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class GpuLoad:
    """Of one GPU: load in percent, and memory in use and in all, in MiB."""

    name: str
    util_pct: float
    used_mib: float
    total_mib: float
    temperature_c: int | None = None


class Gpus(Protocol):
    def names(self) -> list[str] | str:
        """The visible GPUs, or why they can not be seen."""

    def loads(self) -> list[GpuLoad] | str:
        """What each does now, or why that can not be read."""


class NoGpus:
    """For jobs that ask for none."""

    def names(self) -> list[str] | str:
        return []

    def loads(self) -> list[GpuLoad] | str:
        return []


class NvidiaGpus:
    """One thread uses one of these."""

    def names(self) -> list[str] | str:
        return _asked(lambda nvml: [_text(nvml.nvmlDeviceGetName(handle)) for handle in _handles(nvml)])

    def loads(self) -> list[GpuLoad] | str:
        return _asked(lambda nvml: [_load(nvml, handle) for handle in _handles(nvml)])


def _asked(question: Callable[[Any], list[T]]) -> list[T] | str:
    try:
        import pynvml
    except ImportError:
        return "the package nvidia-ml-py is not installed beside the agent"
    try:
        # Counts its callers, and costs nothing when the library is up already.
        pynvml.nvmlInit()
        return question(pynvml)
    except pynvml.NVMLError as error:
        return f"NVML: {error}"


def _handles(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]


def _load(nvml: Any, handle: Any) -> GpuLoad:
    # Version 2 leaves out what the driver keeps for itself, so that a GPU nobody uses has nothing in use.
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    return GpuLoad(
        name=_text(nvml.nvmlDeviceGetName(handle)),
        util_pct=float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        used_mib=memory.used / 2**20,
        total_mib=memory.total / 2**20,
        temperature_c=int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
    )


def _text(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name

"""Which driver an installed torch needs: a driver supports the CUDA of its own major version and all older
ones.
"""

import re
from collections.abc import Mapping

DRIVERS = {11: 450, 12: 525, 13: 580}
"""The oldest driver for each major version of CUDA
(https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html).
"""
RUNTIMES = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12")
"""Distributions of the CUDA runtime, which wheels of torch require; their versions are those of CUDA."""
_TORCH = re.compile(r"\+cu([0-9]{2})[0-9]")
_MAJOR = re.compile(r"[0-9]+")


def cuda_major(installed: Mapping[str, str]) -> int | None:
    """Return the major version of CUDA that the installed torch was built for; None if it is unknown.
    `installed`: versions by name.
    """
    if "torch" not in installed:
        return None
    named = _TORCH.search(installed["torch"])
    if named is not None:
        return int(named[1])
    found = {
        int(major[0]) for name in RUNTIMES if (major := _MAJOR.match(installed.get(name, ""))) is not None
    }
    return found.pop() if len(found) == 1 and "+" not in installed["torch"] else None


def driver_warning(installed: Mapping[str, str], driver_cuda: tuple[int, ...]) -> str:
    """Return a warning if the driver is too old for the installed torch; "" if it is not, or if that is
    unknown. `driver_cuda`: the newest CUDA version that the driver supports, such as (12, 8).
    """
    needed = cuda_major(installed)
    if needed is None or not driver_cuda or driver_cuda[0] >= needed:
        return ""
    driver = f"a driver {DRIVERS[needed]} or newer" if needed in DRIVERS else "a newer driver"
    return (
        f"torch {installed['torch']} is built for CUDA {needed}, which needs {driver}; this machine's driver "
        "supports CUDA "
        f"{'.'.join(map(str, driver_cuda))}: install a wheel for CUDA {driver_cuda[0]} in `setup`, or choose "
        "machines with a newer driver"
    )

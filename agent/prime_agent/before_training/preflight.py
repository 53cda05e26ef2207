"""Checks that the machine is fit for the job. All faults are reported together, each with the required and
the actual value.
"""

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from prime_agent.before_training.phase import PhaseError
from prime_agent.gpu.cuda_contexts import Contexts
from prime_agent.gpu.reading import GpuLoad, GpuReader
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec, RunSpec

OPEN_FILES_MIN = 65_536
"""Minimum open-file limit of a rented machine if the run does not specify one."""
OPEN_FILES_MAX = 2**20
"""Upper limit to which the open-file limit is raised. With limits a thousand times higher, programs that
iterate over all possible file descriptors become very slow.
"""

GPUS_S_MAX = 120.0
"""Seconds to wait for the driver: a sleeping one takes some seconds to wake up each GPU."""

DISK_SHARE_MIN = 0.5
"""Minimum share of the requested disk size that must be free; the image and the system use the rest."""

SHM = Path("/dev/shm")
SHM_BYTES_MIN = 2**30
"""Size of /dev/shm that NVIDIA recommends for NCCL in containers, which have 64 MiB by default."""


def preflight(
    hardware: HardwareSpec, disk: Path, gpus: GpuReader, contexts: Callable[[], Contexts]
) -> Contexts:
    """Check the machine and raise this process's open-file limit, which its children inherit, as far as
    possible. Return what `contexts`, which makes a CUDA context on each GPU, has found; it is called if the
    job needs GPUs and they can be queried.

    Raises PhaseError that lists all faults.
    """
    found = Contexts()
    problem = _gpus(hardware, gpus)
    if hardware.gpus and problem is None:
        found = contexts()
        problem = found.fault
    wrong = [
        problem
        for problem in (_open_files(wanted_files(hardware)), _free_disk(hardware, disk), problem)
        if problem
    ]
    if wrong:
        raise PhaseError(Cause.PREFLIGHT_FAILED, "; ".join(wrong))
    return found


def shm_bytes() -> int | None:
    """Return the size of /dev/shm, or None if there is none."""
    try:
        disk = os.statvfs(SHM)
    except OSError:
        return None
    return disk.f_blocks * disk.f_frsize


def shm_warning(spec: RunSpec, size_bytes: int | None) -> str:
    """Return a warning if /dev/shm may be too small for a training with several processes; "" if it is
    not.
    """
    if (
        not spec.hardware.gpus
        or max(spec.hardware.count, spec.trainer.workers) < 2
        or size_bytes is None
        or size_bytes >= SHM_BYTES_MIN
    ):
        return ""
    return (
        f"/dev/shm has {size_bytes / 2**20:.0f} MiB, and NCCL and data loaders share memory there: if "
        "training ends with shared_memory, "
        f"use an image or provider that gives containers at least {SHM_BYTES_MIN // 2**30} GiB "
        "(--shm-size=1g), or loaders without workers"
    )


def wanted_files(hardware: HardwareSpec) -> int:
    """Return the required open-file limit; 0 for no requirement, as on a person's own machine."""
    if hardware.open_files_min is not None:
        return hardware.open_files_min
    return 0 if is_own_machine(allowed_providers(hardware)) else OPEN_FILES_MIN


def _open_files(wanted: int) -> str | None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    goal = max(ceiling, wanted)
    if soft != resource.RLIM_INFINITY and soft < goal:
        for limits in ((goal, max(hard, goal)), (ceiling, hard)):
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            except (ValueError, OSError):
                continue
            break
    after, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if after == resource.RLIM_INFINITY or after >= wanted:
        return None
    return (
        f"the open-file limit is {after} (hard limit {hard}) and cannot be raised "
        "to "
        f"hardware.open_files_min = {wanted}"
    )


def _free_disk(hardware: HardwareSpec, disk: Path) -> str | None:
    free_gib = shutil.disk_usage(disk).free / 2**30
    wanted_gib = hardware.disk_gib * DISK_SHARE_MIN
    if free_gib >= wanted_gib:
        return None
    return (
        f"{free_gib:.1f} GiB are free on the disk; hardware.disk_gib = {hardware.disk_gib} needs "
        "at "
        f"least {wanted_gib:.1f}"
    )


def _gpus(hardware: HardwareSpec, gpus: GpuReader) -> str | None:
    """Return the faults of the GPUs, or None. A GPU that needs a reset is refused now, while nothing can be
    lost yet.
    """
    if not hardware.gpus:
        return None
    snapshot = gpus.look(GPUS_S_MAX)
    if snapshot.problem:
        return f"no GPU is visible: {snapshot.problem}"
    usable = [load for load in snapshot.loads if not load.problem]
    wrong = [problem for load in snapshot.loads if (problem := _problem(load))]
    if len(usable) < hardware.count:
        names = ", ".join(load.name for load in usable) or "none"
        wrong.insert(0, f"{len(usable)} GPUs are visible ({names}), but hardware.count = {hardware.count}")
    return "; ".join(wrong) or None


def _problem(load: GpuLoad) -> str | None:
    if load.problem:
        return f"{load.title} cannot be used: {load.problem}"
    if load.repair_failed:
        return f"{load.title} has bad memory that could not be taken out of use, so the GPU is broken"
    if load.repair_pending:
        return (
            f"{load.title} has bad memory that a reset must take out of use; reset the GPU "
            "(nvidia-smi --gpu-reset) or use another machine"
        )
    return None

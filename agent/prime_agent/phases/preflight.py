"""Is this machine fit for the job? Whatever is wrong is said with the value wanted and the value seen, all at once."""

import resource
import shutil
from pathlib import Path

from prime_agent.gpu.reading import GpuLoad, Gpus
from prime_agent.phases.phase import PhaseError
from prime_train.core.causes import Cause
from prime_train.core.spec import HardwareSpec

OPEN_FILES_MIN = 65_536
"""What a rented machine must allow where the run does not say how many."""
OPEN_FILES_MAX = 2**20
"""Enough for anybody. Where the hard limit is a thousand times that, programs that walk through all possible files become very slow."""

GPUS_S_MAX = 120.0
"""A driver that sleeps takes some seconds for each GPU to wake up."""

DISK_SHARE_MIN = 0.5
"""Of the disk that was asked for, so much must be free: the image and the system have their part."""


def preflight(hardware: HardwareSpec, disk: Path, gpus: Gpus) -> None:
    """Raises PhaseError. The open-file limit of this process, which its children inherit, is raised as far as that goes."""
    wrong = [fault for fault in (_open_files(wanted_files(hardware)), _free_disk(hardware, disk), _gpus(hardware, gpus)) if fault]
    if wrong:
        raise PhaseError(Cause.PREFLIGHT_FAILED, "; ".join(wrong))


def wanted_files(hardware: HardwareSpec) -> int:
    """0: as many as there are. A person's own machine is taken as it is."""
    if hardware.open_files_min is not None:
        return hardware.open_files_min
    return 0 if hardware.provider == "local" else OPEN_FILES_MIN


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
    return f"the open-file limit is {after} (hard limit {hard}) and cannot be raised to hardware.open_files_min = {wanted}"


def _free_disk(hardware: HardwareSpec, disk: Path) -> str | None:
    free_gib = shutil.disk_usage(disk).free / 2**30
    wanted_gib = hardware.disk_gib * DISK_SHARE_MIN
    if free_gib >= wanted_gib:
        return None
    return f"{free_gib:.1f} GiB are free on the disk; at least {wanted_gib:.1f} are needed where hardware.disk_gib = {hardware.disk_gib}"


def _gpus(hardware: HardwareSpec, gpus: Gpus) -> str | None:
    """A GPU that needs a reset is refused now, when nothing is lost by it yet."""
    if not hardware.gpus:
        return None
    snapshot = gpus.look(GPUS_S_MAX)
    if snapshot.trouble:
        return f"no GPU can be seen: {snapshot.trouble}"
    usable = [load for load in snapshot.loads if not load.trouble]
    wrong = [fault for load in snapshot.loads if (fault := _fault(load))]
    if len(usable) < hardware.count:
        names = ", ".join(load.name for load in usable) or "none"
        wrong.insert(0, f"{len(usable)} GPUs are visible ({names}); hardware.count = {hardware.count}")
    return "; ".join(wrong) or None


def _fault(load: GpuLoad) -> str | None:
    if load.trouble:
        return f"{load.title} cannot be used: {load.trouble}"
    if load.repair_failed:
        return f"{load.title} has bad memory that could not be taken out of use; it is broken"
    if load.repair_pending:
        return f"{load.title} has bad memory that waits to be taken out of use; reset it (nvidia-smi --gpu-reset) or use another machine"
    return None

"""A task of dstack, which replaces machines that are lost by its `retry`."""

from typing import Any

from prime_train.estimate import gpus
from prime_train.interop.export.machine_files import HEADER
from prime_train.interop.export.task import Task, Written
from prime_train.spec.choices import Spot
from prime_train.spec.overrides import config_text

FILES, DISK = "/prime-train/files", "/prime-train/disk"
FILES_BYTES_MAX = 2 * 2**20
"""What a server of dstack takes unless DSTACK_SERVER_CODE_UPLOAD_LIMIT allows more."""
_SPOT = {Spot.PREFER: "auto", Spot.ONLY: "spot", Spot.NEVER: "on-demand"}


def dstack_task(task: Task) -> Written:
    """Return the task for dstack."""
    hardware = task.spec.hardware
    content: dict[str, Any] = {"type": "task", "name": task.name}
    content |= {"image": task.image} if task.image else {"python": "3.12"}
    # A name without a value is taken from the environment in which the task is applied.
    content["env"] = [*(f"{name}={value}" for name, value in task.environment.items()), *task.secrets]
    content["files"] = [f"./files:{FILES}"]
    content["commands"] = [task.command(FILES, DISK)]
    resources: dict[str, Any] = {"disk": f"{hardware.disk_gib}GB.."}
    if task.gpus:
        families = list(dict.fromkeys(gpus.family(kind).replace("_", "") for kind in hardware.gpus))
        sizes = [size for kind in hardware.gpus if (size := gpus.named_gb(kind))]
        # A little less than the name says, because makers and dstack round differently.
        memory = {"memory": f"{int(min(sizes) * 0.9)}GB.."} if sizes else {}
        resources["gpu"] = {"name": families, "count": task.gpus, **memory}
        resources["shm_size"] = "16GB"
    content |= {
        "resources": resources,
        "spot_policy": _SPOT[hardware.spot],
        "retry": {"on_events": ["no-capacity", "interruption"], "duration": "7d"},
        "stop_duration": f"{task.grace_s}s",
        "max_duration": "off",
    }
    if hardware.usd_per_hour_max is not None:
        content["max_price"] = hardware.usd_per_hour_max
    notes: tuple[str, ...] = ()
    if task.contents.size > FILES_BYTES_MAX:
        mib = task.contents.size / 2**20
        notes = (
            f"the files have {mib:.1f} MiB: the server of dstack needs DSTACK_SERVER_CODE_UPLOAD_LIMIT of at "
            f"least {task.contents.size}",
        )
    return Written(
        "task.dstack.yml",
        HEADER + config_text(content),
        ("dstack apply -f task.dstack.yml",),
        task.contents.files,
        notes,
    )

"""A task of SkyPilot, for `sky jobs launch`, which replaces machines that are lost."""

from collections.abc import Sequence
from typing import Any

from prime_train.estimate import gpus
from prime_train.interop.export.machine_files import HEADER
from prime_train.interop.export.task import Task, Written
from prime_train.spec.choices import Spot
from prime_train.spec.overrides import config_text

FILES, DISK = "~/prime-train/files", "~/prime-train/disk"
DISK_GB_MIN = 64
"""Images of clouds take tens of GB themselves."""
_NAMED_WITH_MEMORY = ("A100_80GB", "V100_32GB")
"""Kinds whose family has two sizes there, of which only the larger one is named with its size."""
_OWN_NAMES = {"RTX6000Ada": "RTX6000-Ada", "RTX4000Ada": "RTX4000-Ada", "RTX_PRO_6000B": "RTXPRO6000"}


def skypilot_task(task: Task) -> Written:
    """Return the task for SkyPilot."""
    hardware = task.spec.hardware
    resources: dict[str, Any] = {"disk_size": max(hardware.disk_gib, DISK_GB_MIN)}
    if task.image:
        resources["image_id"] = f"docker:{task.image}"
    if hardware.usd_per_hour_max is not None:
        resources["max_hourly_cost"] = hardware.usd_per_hour_max
    resources |= _choices(
        [f"{accelerator(kind)}:{task.gpus}" for kind in hardware.gpus] if task.gpus else [], hardware.spot
    )
    content: dict[str, Any] = {"name": task.name, "resources": resources, "envs": dict(task.environment)}
    if task.secrets:
        content["secrets"] = dict.fromkeys(task.secrets)
    content |= {
        "file_mounts": {FILES: "./files"},
        "run": task.command("$HOME/prime-train/files", "$HOME/prime-train/disk") + "\n",
    }
    given = "".join(f" --secret {name}" for name in task.secrets)
    return Written(
        "task.yaml",
        HEADER + config_text(content),
        (f"sky jobs launch{given} task.yaml",),
        task.contents.files,
    )


def _choices(accelerators: Sequence[str], spot: Spot) -> dict[str, Any]:
    """Return which machines the task takes, those first that the config prefers: a spot machine of any kind,
    then one on demand.
    """
    uses_spot = {Spot.PREFER: (True, False), Spot.ONLY: (True,), Spot.NEVER: (False,)}[spot]
    kinds = [{"accelerators": one} for one in accelerators] or [{}]
    choices = [{**kind, "use_spot": uses} for uses in uses_spot for kind in kinds]
    return dict(choices[0]) if len(choices) == 1 else {"ordered": choices}


def accelerator(kind: str) -> str:
    """Return SkyPilot's name for a kind of GPU."""
    if kind in _NAMED_WITH_MEMORY:
        return kind.replace("_", "-")
    family = gpus.family(kind)
    return _OWN_NAMES.get(family, family)

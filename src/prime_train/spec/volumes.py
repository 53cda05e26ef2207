"""Which volumes a provider mounts, and where: existing ones, with data sets, that outlive a machine.

A volume is not a place for what a run writes: it is shared with other runs, and the checkpoints of a run are
kept in the bucket.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Protocol

from prime_train.providers.kinds import PROVIDERS, NamesProviders
from prime_train.text.formatting import alternatives

MOUNT_PATTERN = r"^(/[A-Za-z0-9_][A-Za-z0-9._-]{0,62}){1,8}$"
NAME_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"
SUB_PATH_PATTERN = r"^([A-Za-z0-9_][A-Za-z0-9._-]{0,127}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,127}){0,15})?$"
VOLUMES_MAX = 16
_SYSTEM = (
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
)
TAKEN = frozenset((*_SYSTEM, "usr", "var", "workspace", "ephemeral"))
"""Folders at the root of a machine that belong to its system, or in which the agent works and deletes what it
no longer needs.
"""
WRITABLE = ":rw"
"""How an entry of the operator's policy ends that allows writing."""


class Volume(Protocol):
    """A volume as a config names it."""

    @property
    def name(self) -> str: ...

    @property
    def sub_path(self) -> str: ...

    @property
    def read_only(self) -> bool: ...


def with_volumes() -> tuple[str, ...]:
    """Return the providers that mount volumes."""
    return tuple(name for name, row in PROVIDERS.items() if row.volumes is not None)


def why_without(provider: str) -> str:
    """Return why the provider mounts no volumes; empty if it does, or is not known."""
    row = PROVIDERS.get(provider)
    if row is None or row.volumes is not None:
        return ""
    return (
        f"provider {provider} has no volumes that can be mounted; those that have "
        "are "
        f"{alternatives(with_volumes())}"
    )


def violation_of_volumes(hardware: NamesProviders, volumes: Mapping[str, Volume]) -> str | None:
    """Return why these volumes, by the path at which each is mounted, cannot be mounted, with what to do
    after a semicolon; None if they can.
    """
    if not volumes:
        return None
    if hardware.provider is None:
        return f"a volume is of one provider; write hardware.provider: {alternatives(with_volumes())}"
    row = PROVIDERS[hardware.provider]
    if row.volumes is None:
        return f"{why_without(hardware.provider)}; delete this key, or choose another provider"
    if len(volumes) > row.volumes.most:
        return (
            f"{row.title} mounts at most {row.volumes.most} on a machine, not {len(volumes)}; keep that many"
        )
    return next(
        (
            why
            for path, one in volumes.items()
            if (why := _violation_of(path, one, hardware.provider, volumes)) is not None
        ),
        None,
    )


def _violation_of(path: str, volume: Volume, provider: str, volumes: Mapping[str, Volume]) -> str | None:
    row, place = PROVIDERS[provider], PurePosixPath(path)
    assert row.volumes is not None
    if place.parts[1] in TAKEN:
        return (
            f"{path} is inside /{place.parts[1]}, which belongs to the machine; mount it elsewhere, "
            "such as /data"
        )
    below = next(
        (other for other in volumes if other != path and PurePosixPath(other).is_relative_to(place)), None
    )
    if below is not None:
        return f"{below} is inside {path}; mount them beside each other"
    if volume.sub_path and not row.volumes.has_sub_paths:
        return (
            f"{path}: {row.title} mounts a volume as a whole; delete sub_path, and "
            "use "
            f"{path}/{volume.sub_path} in the config"
        )
    if volume.read_only and not row.volumes.can_be_read_only:
        return (
            f"{path}: {row.title} mounts no volume read-only; write read_only: false, and let "
            "the command write nothing there"
        )
    return None


def wanted(provider: str, volume: Volume) -> str:
    """Return the volume as a line of the operator's policy names it: kubernetes/datasets/sets/fineweb, with
    :rw if it is written to.
    """
    return f"{provider}/{volume.name}{f'/{volume.sub_path}' if volume.sub_path else ''}{'' if volume.read_only else WRITABLE}"


def mount_of(path: str, volumes: Mapping[str, Volume]) -> str | None:
    """Return at which of these mounts the absolute path is; None: at none."""
    place = PurePosixPath(path)
    if not place.is_absolute() or ".." in place.parts:
        return None
    return next((mount for mount in volumes if place.is_relative_to(mount)), None)

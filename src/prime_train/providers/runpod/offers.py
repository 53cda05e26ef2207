"""Conversion of RunPod's catalogue to offers.

The catalogue has the price of one GPU of each kind in each cloud, and for a number of GPUs how many pods are
free in which data centre. An offer is one kind, number, cloud and data centre, so that a place that fails is
left out without the others. The catalogue reserves nothing. The container's disk is charged in addition, by
its size.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prime_train.estimate import gpus
from prime_train.providers.kinds import ImageForm
from prime_train.providers.rental.pods import ARM64_HINDRANCE
from prime_train.providers.runpod.models import DataCenter, GpuType
from prime_train.runs.offer import Offer
from prime_train.spec.image import form_of
from prime_train.spec.spec import HardwareSpec

PROVIDER = "runpod"
SOLD_OUT = "NONE"
SIZES = (1, 2, 4, 8)
"""Numbers of GPUs in machines for rent."""
ANYWHERE = "anywhere"
DISK_USD_PER_GB_MONTH = 0.10
"""Price of the container's disk, which is on RunPod's page about storage (November 2026) and not in the
API.
"""
HOURS_PER_MONTH = 730

_GB_PER_GIB = 2**30 / 10**9
_PARTS = 5


@dataclass(frozen=True)
class RunPodMachine:
    """What one offer rents. `place`: None if RunPod chooses it. `bid_usd`: the bid for one GPU of a spot
    machine; None: on-demand.
    """

    gpu: GpuType
    count: int
    cloud: str
    place: DataCenter | None
    stock: str
    bid_usd: float | None = None

    @property
    def offer_id(self) -> str:
        """Return the id, which is the same on a later day, so that a machine that failed is recognised."""
        parts = (
            self.gpu.id,
            f"{self.count}x",
            self.region or ANYWHERE,
            self.cloud.lower(),
            "on-demand" if self.bid_usd is None else "spot",
        )
        return ":".join(map(_plain, parts))

    @property
    def region(self) -> str:
        """Return the data centre as it is shown; empty if RunPod chooses it."""
        return _plain(self.place.id) if self.place is not None else ""


def counts(hardware: HardwareSpec) -> list[int]:
    """Return the numbers of GPUs to ask for. If no kind of GPU is named, a machine of any size fits."""
    if hardware.variants:
        return sorted({variant.count for variant in hardware.variants} - {0})
    return [hardware.count] if hardware.gpus else list(SIZES)


def machines(rows: Sequence[GpuType], count: int, cloud: str) -> list[RunPodMachine]:
    """Return what is not sold out."""
    found: list[RunPodMachine] = []
    for row in rows:
        for place in row.data_centers or ():
            if _stock(place.availability) != SOLD_OUT:
                found.append(RunPodMachine(row, count, cloud, place, _stock(place.availability)))
        if not row.data_centers and _stock(row.availability) != SOLD_OUT:
            found.append(RunPodMachine(row, count, cloud, None, _stock(row.availability)))
    return found


def spot_machines(
    rows: Sequence[GpuType], bids: Mapping[str, float], count: int, cloud: str
) -> list[RunPodMachine]:
    """Return the spot machines of the kinds in the catalogue. RunPod chooses where they are. A kind whose
    lowest bid is not below its on-demand price is left out, because the same machine is safer on-demand.
    """
    return [
        RunPodMachine(row, count, cloud, None, "", bids[row.id])
        for row in rows
        if row.id in bids and bids[row.id] < (row.price.of(cloud) or math.inf)
    ]


def is_offer_id(text: str) -> bool:
    """Return whether `text` has the form of an id of `RunPodMachine`."""
    return text.count(":") == _PARTS - 1


@dataclass(frozen=True)
class Volume:
    """The network volume that a config names. `place`: the data centre that it is in; empty: the account has
    no such volume.
    """

    id: str
    place: str


def offer(
    machine: RunPodMachine, hardware: HardwareSpec, clouds: Sequence[str], volume: Volume | None = None
) -> Offer:
    """Return the offer for a run with this hardware spec. `clouds`: those that may be rented from; `volume`:
    the one to mount.
    """
    memory_gb = int(machine.gpu.memory or 0)
    named = gpus.from_makers_name(machine.gpu.id, memory_gb)
    return Offer(
        provider=PROVIDER,
        offer_id=machine.offer_id,
        usd_per_hour=usd_per_hour(machine, hardware),
        spot=machine.bid_usd is not None,
        gpu=gpus.first_wanted(named.kind, named.socket, hardware.gpus),
        gpu_count=machine.count,
        disk_gib=hardware.disk_gib,
        region=machine.region,
        data_center=machine.region,
        gpu_gb=memory_gb,
        hindrance=_hindrance(machine, named.kind, hardware, clouds) or _against_volume(machine, volume),
        socket=named.socket,
        stock=machine.stock.capitalize(),
    )


def disk_gb(hardware: HardwareSpec) -> int:
    return max(1, math.ceil(hardware.disk_gib * _GB_PER_GIB))


def usd_per_hour(machine: RunPodMachine, hardware: HardwareSpec) -> float:
    """Return the price of the whole machine with its disk; 0 if the catalogue has none."""
    gpu_usd = machine.gpu.price.of(machine.cloud) if machine.bid_usd is None else machine.bid_usd
    return (
        round(gpu_usd * machine.count + disk_gb(hardware) * DISK_USD_PER_GB_MONTH / HOURS_PER_MONTH, 6)
        if gpu_usd
        else 0.0
    )


def _against_volume(machine: RunPodMachine, volume: Volume | None) -> str:
    """Return why the network volume cannot be mounted there; empty if it can."""
    if volume is None:
        return ""
    if not volume.place:
        return f"cannot mount network volume {volume.id}, which this account does not have"
    if machine.cloud != "SECURE":
        return f"is in the {machine.cloud.lower()} cloud, which has no network volumes"
    if machine.bid_usd is not None:
        return "is spot, and network volumes are mounted only on on-demand machines"
    if machine.place is not None and machine.place.id != volume.place:
        return f"is in {machine.region}, but network volume {volume.id} is in {_plain(volume.place)}"
    return ""


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text)[:64]


def _stock(text: str | None) -> str:
    return re.sub(r"[^A-Z_]", "", (text or "").upper())[:16]


def _hindrance(machine: RunPodMachine, kind: str, hardware: HardwareSpec, clouds: Sequence[str]) -> str:
    if machine.cloud not in clouds:
        return (
            f"is in the {machine.cloud.lower()} cloud, but PRIME_TRAIN_RUNPOD_CLOUD "
            "is "
            f"{' and '.join(clouds).lower()}"
        )
    if machine.bid_usd is None and not machine.gpu.price.of(machine.cloud):
        return "has no price"
    if (machine.gpu.manufacturer or "NVIDIA").upper() != "NVIDIA":
        return "has GPUs that are not NVIDIA's, but trainers are installed for CUDA"
    if hardware.image is not None and form_of(hardware.image) is ImageForm.NAME:
        return f"does not start from an image by a provider's name for it, such as {hardware.image}"
    return ARM64_HINDRANCE if gpus.has_arm64(kind) else ""

"""Conversion of Lambda Cloud's types of machines to offers: one for each type and each region in which it is
free.

All machines are on-demand. A type has its disk and its number of GPUs, and its price in cents is that of the
whole machine.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prime_train.estimate import gpus
from prime_train.providers.lambda_cloud.models import NAME, InstanceType, Stock
from prime_train.providers.rental.pods import ARM64_HINDRANCE
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec

PROVIDER = "lambda"
EXAMPLE_ID = "gpu_8x_h100_sxm5:us-west-1"

_GPU = re.compile(r"([A-Za-z0-9][A-Za-z0-9 -]{0,40}?) \((\d{1,4}) GB(?: ([A-Za-z0-9]{1,8}))?\)")
_OFFER_ID = re.compile(f"{NAME}:{NAME}")


@dataclass(frozen=True)
class LambdaMachine:
    """What one offer rents."""

    type: InstanceType
    region: str

    @property
    def offer_id(self) -> str:
        """Return the id, which is the same on a later day, so that a machine that failed is recognised."""
        return f"{self.type.name}:{self.region}"


@dataclass(frozen=True)
class Gpu:
    kind: str
    socket: str
    gb: int


def machines(rows: Sequence[Stock]) -> Iterator[LambdaMachine]:
    """Yield what is free, apart from machines without a GPU or with one of an unknown kind."""
    for row in rows:
        for region in row.regions_with_capacity_available:
            if row.instance_type.specs.gpus and gpu_of(row.instance_type) is not None:
                yield LambdaMachine(row.instance_type, region.name)


def is_offer_id(text: str) -> bool:
    """Return whether `text` has the form of an id of `LambdaMachine`."""
    return _OFFER_ID.fullmatch(text) is not None


def gpu_of(kind: InstanceType) -> Gpu | None:
    """Return the GPU by its description, such as `H100 (80 GB SXM5)`; None if it is not a known kind."""
    found = _GPU.fullmatch(kind.gpu_description or "")
    if found is None:
        return None
    name, gb, socket = found[1], int(found[2]), found[3] or ""
    named = gpus.from_makers_name(f"{name} {socket}", gb)
    known = {gpus.plain(gpus.family(each)) for each in gpus.RENTED}
    return (
        Gpu(named.kind, socket or named.socket, gb) if gpus.plain(gpus.family(named.kind)) in known else None
    )


def offer(machine: LambdaMachine, hardware: HardwareSpec) -> Offer:
    """Return the offer for a run with this hardware spec."""
    gpu = gpu_of(machine.type) or Gpu("", "", 0)
    return Offer(
        provider=PROVIDER,
        offer_id=machine.offer_id,
        usd_per_hour=usd_per_hour(machine),
        spot=False,
        gpu=gpus.first_wanted(gpu.kind, gpu.socket, hardware.gpus),
        gpu_count=machine.type.specs.gpus,
        disk_gib=machine.type.specs.storage_gib,
        region=machine.region,
        data_center=machine.region,
        gpu_gb=gpu.gb,
        hindrance=_hindrance(machine, gpu.kind, hardware),
        socket=gpu.socket,
    )


def usd_per_hour(machine: LambdaMachine) -> float:
    return round(machine.type.price_cents_per_hour / 100, 6)


def _hindrance(machine: LambdaMachine, kind: str, hardware: HardwareSpec) -> str:
    if not machine.type.price_cents_per_hour:
        return "has no price"
    if hardware.image is not None:
        return "starts from Lambda Cloud's own image, and from none that a config names"
    return ARM64_HINDRANCE if gpus.has_arm64(kind) else ""

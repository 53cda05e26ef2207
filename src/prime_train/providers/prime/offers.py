"""Conversion of Prime's rows to offers: the full price of a machine with the disk that a run needs, and
reasons against it.

A row's price is that of the box. Disk, processors and memory that it does not include are charged per unit;
the ordered amount of each is part of the offer. Prime's disk sizes are in GB (10^9 bytes), those of a run's
spec in GiB.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.estimate import gpus
from prime_train.providers.prime.models import Amount, AvailableMachine
from prime_train.providers.rental.pods import ARM64_HINDRANCE
from prime_train.runs.offer import Offer
from prime_train.spec.image import TEMPLATE
from prime_train.spec.spec import HardwareSpec

PROVIDER = "prime"
SOLD_OUT = "unavailable"
OF_A_TEMPLATE = "custom_template"
"""Prime's name for the image of a machine that starts from a template of the user."""
DISK_RESERVED_GB = {"runpod": 40}
"""Space in GB, by provider, that the provider keeps of an ordered disk for its own file system."""

CPU_NODE = "CPU_NODE"

GPU_GB = {"GB200": 186, "GB300": 279, "GH200_96GB": 96, "GH200_480GB": 96, "GH200_624GB": 144}
"""Memory of one GPU in GB for types whose name does not end in it: Grace-Hopper's names count the processor's
memory too.
"""

_GB_PER_GIB = 2**30 / 10**9
_PARTS = 7
PART_CHARS_MAX = 64


@dataclass(frozen=True)
class RequestedMachine:
    """The amounts to order with a box (None if the row leaves no choice), and the total price per hour."""

    disk_gb: int | None
    vcpus: int | None
    memory_gb: int | None
    usd_per_hour: float | None
    """None if the row has no price."""


@dataclass(frozen=True)
class Terms:
    """The conditions under which this control plane rents: the images it accepts, the preferred one first,
    and whether machines of private people are refused.
    """

    images: tuple[str, ...] = (
        "ubuntu_22_cuda_12",
        "cuda_12_6_pytorch_2_7",
        "cuda_12_4_pytorch_2_6",
        "cuda_12_4_pytorch_2_5",
    )
    secure_only: bool = False

    def image(self, row: AvailableMachine, wanted: str | None = None) -> str | None:
        """Return the image to order, or None if the row offers none that suits. `wanted`: the image that the
        run names; without it, one of `images`. If a row lists no images, the first that suits is requested.
        """
        return next((name for name in self.suitable(wanted) if not row.images or name in row.images), None)

    def suitable(self, wanted: str | None) -> tuple[str, ...]:
        """Return the names of the images that may be ordered."""
        if wanted is None:
            return self.images
        return (OF_A_TEMPLATE if template_of(wanted) else wanted,)


def template_of(image: str | None) -> str | None:
    """Return the id of the template that the run names as its image; None if it names none."""
    return image.removeprefix(TEMPLATE) if image is not None and image.startswith(TEMPLATE) else None


def named(rows: Sequence[AvailableMachine], hardware: HardwareSpec) -> dict[str, AvailableMachine]:
    """Return the rows that are not sold out, by offer id: those with the wanted GPUs first, then the
    cheapest.

    An id is made of the machine's type and place, so that a machine that failed is recognised on a later day.
    Prime's own `cloudId` changes over time, and is added (as a hash) only if nothing else distinguishes two
    rows.
    """
    left = [row for row in rows if (row.stock_status or "").lower() != SOLD_OUT]
    wanted = set(hardware.gpus)
    left.sort(
        key=lambda row: (
            gpu_kind(row, hardware.gpus) not in wanted,
            requested_machine(row, hardware).usd_per_hour or math.inf,
            _plain_id(row),
        )
    )
    clouds: dict[str, set[str]] = {}
    for row in left:
        clouds.setdefault(_plain_id(row), set()).add(row.cloud_id)
    found: dict[str, AvailableMachine] = {}
    for row in left:
        # Of two indistinguishable rows, the cheaper one, which comes first, is kept.
        found.setdefault(_offer_id(row, alone=len(clouds[_plain_id(row)]) == 1), row)
    return found


def is_offer_id(text: str) -> bool:
    """Return whether `text` has the form of an id from `named`."""
    return text.count(":") == _PARTS - 1


def offer(offer_id: str, row: AvailableMachine, hardware: HardwareSpec, terms: Terms) -> Offer:
    """Return the offer of one row for a run with this hardware spec."""
    return Offer(
        provider=PROVIDER,
        offer_id=offer_id,
        usd_per_hour=requested_machine(row, hardware).usd_per_hour or 0.0,
        spot=bool(row.is_spot),
        gpu=gpu_kind(row, hardware.gpus),
        gpu_count=0 if row.gpu_type == CPU_NODE else row.gpu_count,
        disk_gib=_disk_gib(row),
        region=row.data_center or row.region or row.country or "",
        gpu_gb=gpu_gb(row),
        hindrance=_hindrance(row, hardware, terms),
        socket=row.socket or "",
        stock=row.stock_status or "",
        data_center=row.data_center or "",
    )


def gpu_gb(row: AvailableMachine) -> int:
    """Return the advertised memory of one GPU in GB; 0 if there is no GPU or its memory is unknown. The row's
    memory field is used only for a box with one GPU, because with several GPUs it is sometimes their sum.
    """
    if row.gpu_type in GPU_GB or row.gpu_type == CPU_NODE:
        return GPU_GB.get(row.gpu_type, 0)
    named_gb = gpus.named_gb(row.gpu_type)
    if named_gb:
        return named_gb
    return int(row.gpu_memory or 0) if row.gpu_count == 1 else 0


def gpu_kind(row: AvailableMachine, wanted: Sequence[str]) -> str:
    """Return the first of `wanted` that names this row's GPU, else Prime's own name; "" for a machine without
    a GPU.

    A GPU is named by Prime's type (H100_80GB) or by its family (H100, of any memory size), each with or
    without the socket (H100 SXM5). Case, spaces, dashes and underscores are ignored.
    """
    if row.gpu_type == CPU_NODE:
        return ""
    return gpus.first_wanted(row.gpu_type, row.socket or "", wanted)


def requested_machine(row: AvailableMachine, hardware: HardwareSpec) -> RequestedMachine:
    """Return what to order with the box, and the total price per hour."""
    disk_gb = _disk_gb(row, hardware.disk_gib)
    vcpus, memory_gb = _usual(row.vcpu), _usual(row.memory)
    parts = ((row.disk, disk_gb), (row.vcpu, vcpus), (row.memory, memory_gb))
    box = row.prices.on_demand if row.prices.community_price is None else row.prices.community_price
    usd = None if box is None else round(box + sum(_extra_usd(amount, count) for amount, count in parts), 6)
    return RequestedMachine(disk_gb, vcpus, memory_gb, usd)


def _extra_usd(amount: Amount | None, count: int | None) -> float:
    """Return the price per hour that this amount adds to the box's. If the row does not state whether the
    amount is included, it counts as not included: a price that is too high only lowers the offer's rank, but
    one that is too low makes the order fail. If it is included, only what exceeds the default amount is
    charged.
    """
    if amount is None or count is None or amount.price_per_unit is None:
        return 0.0
    free = (amount.default_count or 0) if amount.default_included_in_price else 0
    return max(0.0, count - free) * amount.price_per_unit


def _usual(amount: Amount | None) -> int | None:
    count = (
        None if amount is None else amount.min_count if amount.default_count is None else amount.default_count
    )
    return math.floor(count) if count is not None and count >= 1 else None


def _disk_gb(row: AvailableMachine, disk_gib: int) -> int | None:
    """Return the smallest disk in GB that is large enough and can be ordered; never less than the default
    disk if that is included in the price. None if the row names no disk.
    """
    most_gb = _disk_most_gb(row)
    if row.disk is None or most_gb is None:
        return None
    wanted_gb = math.ceil(disk_gib * _GB_PER_GIB) + DISK_RESERVED_GB.get(row.provider, 0)
    free = row.disk.default_included_in_price or not row.disk.price_per_unit
    least_gb = row.disk.default_count if free or row.disk.min_count is None else row.disk.min_count
    base_gb, step_gb = math.ceil(least_gb or 0), max(1, math.ceil(row.disk.step or 1))
    # Whole steps upwards from the least; `fits` refuses a machine whose largest disk is too small.
    steps = max(0, math.ceil((wanted_gb - base_gb) / step_gb))
    return max(1, min(base_gb + steps * step_gb, most_gb))


def _disk_most_gb(row: AvailableMachine) -> int | None:
    disk = row.disk or Amount()
    return next(
        (math.floor(count) for count in (disk.max_count, disk.default_count, disk.min_count) if count), None
    )


def _disk_gib(row: AvailableMachine) -> int:
    return max(
        0, math.floor(((_disk_most_gb(row) or 0) - DISK_RESERVED_GB.get(row.provider, 0)) / _GB_PER_GIB)
    )


def _hindrance(row: AvailableMachine, hardware: HardwareSpec, terms: Terms) -> str:
    if row.prices.currency.upper() != "USD":
        return f"is priced in {row.prices.currency[:8]}, but only USD is supported"
    if not requested_machine(row, hardware).usd_per_hour:
        return "has no price"
    if gpus.has_arm64(row.gpu_type):
        return ARM64_HINDRANCE
    if row.prepaid_time:
        return f"must be paid {row.prepaid_time:g} h in advance, even if it is used for less"
    if terms.image(row, hardware.image) is None:
        if template_of(hardware.image):
            return "does not start from templates"
        return f"has none of the images {', '.join(terms.suitable(hardware.image))}"
    if terms.secure_only and row.security != "secure_cloud":
        return f"is {row.security or 'of no known security'}, but only secure_cloud is allowed"
    if _disk_most_gb(row) is None:
        return "does not state its disk size"
    return ""


def _offer_id(row: AvailableMachine, *, alone: bool) -> str:
    return (
        _plain_id(row)
        if alone
        else f"{_plain_id(row)}~{hashlib.sha256(row.cloud_id.encode()).hexdigest()[:8]}"
    )


def _plain_id(row: AvailableMachine) -> str:
    place = row.data_center or row.country or row.region or ""
    kept = (row.security or "").removesuffix("_cloud")
    parts = (
        row.provider,
        row.gpu_type,
        row.socket or "",
        f"{row.gpu_count}x",
        place,
        kept,
        "spot" if row.is_spot else "on-demand",
    )
    return ":".join(
        "".join(c if c.isalnum() or c in "_-" else "-" for c in part[:PART_CHARS_MAX]) for part in parts
    )

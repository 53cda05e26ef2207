"""Conversion of Vast.ai's offers, and the conditions that they must meet.

An offer is some or all GPUs of one host's machine. On demand it has a fixed price; by a bid it is
interruptible, and costs what is bid: for the whole machine, not for each GPU. The disk is charged by its
size, and traffic by the byte, at prices of each host's own.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from prime_train.estimate import gpus
from prime_train.providers.kinds import ImageForm
from prime_train.providers.rental.pods import ARM64_HINDRANCE
from prime_train.providers.vast.models import OfferRow
from prime_train.providers.vast.names import kind_and_socket, names_of
from prime_train.runs.offer import Offer
from prime_train.spec.choices import Spot
from prime_train.spec.image import form_of
from prime_train.spec.spec import HardwareSpec

PROVIDER = "vast"
EXAMPLE_ID = "machine-1001:8x:RTX-4090:Quebec-CA:bid"
BID, ON_DEMAND = "bid", "ondemand"
SIZES = (1, 2, 4, 8, 16)
"""Numbers of GPUs in machines for rent, if any fits."""
ROWS = 64
"""Rows to ask for of each kind of GPU, the cheapest first: the account may find only so many rows in a
day.
"""
ROWS_MAX = 256

CUDA_MIN = 12.8
"""The CUDA version that a machine's driver must support; trainers are installed for it."""
DOWN_MBPS_MIN = 100.0
"""Mbit/s that a machine must download at: slower ones take longer for an image and a checkpoint than they
train.
"""
RELIABILITY_MIN = 0.95
"""Share of the time for which a machine must have been reachable."""
DURATION_S_MIN = 86_400
"""Seconds for which the host must still rent the machine out."""
VERIFIED = "verified"

BID_USD_MIN, BID_USD_MAX = 0.001, 128.0
HOURS_PER_MONTH = 720

_GB_PER_GIB = 2**30 / 10**9
_MB_PER_GB = 1024
_PARTS = 5


@dataclass(frozen=True)
class VastMachine:
    """What one offer rents. `bid_usd`: the bid in USD per hour; None for on-demand machines."""

    row: OfferRow
    bid_usd: float | None

    @property
    def offer_id(self) -> str:
        """Return the id. It is that of the machine and not of Vast.ai's offer, so that a machine that failed
        is recognised when it is offered again.
        """
        market = ON_DEMAND if self.bid_usd is None else BID
        gpu = _plain(self.row.gpu_name)
        return (
            f"machine-{self.row.machine_id}:{self.row.num_gpus}x:{gpu}:{self.region or 'anywhere'}:{market}"
        )

    @property
    def region(self) -> str:
        return _plain(self.row.geolocation or "")

    @property
    def base_usd(self) -> float | None:
        """Return the price per hour without the disk; None if there is none."""
        return self.row.dph_base if self.bid_usd is None else self.bid_usd

    @property
    def gpu_gb(self) -> int:
        """Return the memory of one GPU; 0: unknown."""
        return round((self.row.gpu_ram or 0) / _MB_PER_GB)


def markets(hardware: HardwareSpec) -> tuple[str, ...]:
    """Return the types of offers to search for."""
    return {Spot.ONLY: (BID,), Spot.NEVER: (ON_DEMAND,)}.get(hardware.spot, (ON_DEMAND, BID))


def query(hardware: HardwareSpec, market: str) -> dict[str, object]:
    """Return a search for machines that suit the run. Nothing is left to Vast.ai's defaults, which differ
    between its API and its page.
    """
    names, least_gb = (
        names_of(hardware.gpus),
        min((variant.gpu_gb_min for variant in hardware.variants), default=0),
    )
    found: dict[str, object] = {
        "type": market,
        "limit": min(ROWS_MAX, ROWS * max(1, len(hardware.gpus))),
        "order": [["dph_total", "asc"], ["id", "asc"]],
        "allocated_storage": disk_gb(hardware),
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        "num_gpus": {"in": _counts(hardware)},
        "direct_port_count": {"gte": 1},
        "cuda_max_good": {"gte": CUDA_MIN},
        "disk_space": {"gte": disk_gb(hardware)},
        "cpu_arch": {"eq": "amd64"},
        "gpu_arch": {"eq": "nvidia"},
        "inet_down": {"gte": DOWN_MBPS_MIN},
        "reliability": {"gte": RELIABILITY_MIN},
        "duration": {"gte": DURATION_S_MIN},
    }
    if names:
        # The description writes names with underscores, the guides with spaces.
        found["gpu_name"] = {"in": sorted({*names, *(name.replace(" ", "_") for name in names)})}
    if least_gb:
        found["gpu_ram"] = {"gte": int(least_gb * _MB_PER_GB * (1 - gpus.SAME_MEMORY))}
    return found


def machines(
    on_demand: Iterable[OfferRow], by_bid: Iterable[OfferRow], factor: float
) -> dict[str, VastMachine]:
    """Return what can be rented, by offer id; of several offers of one machine that cannot be told apart, the
    cheapest. `factor`: what is bid, as a multiple of the lowest bid.
    """
    found: dict[str, VastMachine] = {}
    fixed_usd: dict[tuple[int, int], float] = {}
    for row in on_demand:
        if row.dph_base is not None:
            at = (row.machine_id, row.num_gpus)
            fixed_usd[at] = min(row.dph_base, fixed_usd.get(at, math.inf))
        _keep(found, VastMachine(row, None))
    for row in by_bid:
        _keep(found, VastMachine(row, _bid_usd(row, factor, fixed_usd.get((row.machine_id, row.num_gpus)))))
    return found


def is_offer_id(text: str) -> bool:
    """Return whether `text` has the form of an id of `VastMachine`."""
    return text.count(":") == _PARTS - 1


def offer(machine: VastMachine, hardware: HardwareSpec) -> Offer:
    """Return the offer for a run with this hardware spec."""
    row = machine.row
    named = kind_and_socket(row.gpu_name, machine.gpu_gb)
    return Offer(
        provider=PROVIDER,
        offer_id=machine.offer_id,
        usd_per_hour=usd_per_hour(machine, hardware),
        spot=machine.bid_usd is not None,
        gpu=gpus.first_wanted(named.kind, named.socket, hardware.gpus),
        gpu_count=row.num_gpus,
        disk_gib=int((row.disk_space or 0.0) / _GB_PER_GIB),
        region=machine.region,
        gpu_gb=machine.gpu_gb,
        hindrance=_hindrance(machine, named.kind, hardware),
        socket=named.socket,
        usd_per_gib_down=round((row.inet_down_cost or 0.0) * _GB_PER_GIB, 6),
        usd_per_gib_up=round((row.inet_up_cost or 0.0) * _GB_PER_GIB, 6),
        machine=f"machine-{row.machine_id}",
        host=f"host-{row.host_id}" if row.host_id is not None else "",
    )


def disk_gb(hardware: HardwareSpec) -> int:
    return max(1, math.ceil(hardware.disk_gib * _GB_PER_GIB))


def usd_per_hour(machine: VastMachine, hardware: HardwareSpec) -> float:
    """Return the price of the machine with its disk; 0 if it has none."""
    if not machine.base_usd:
        return 0.0
    return round(machine.base_usd + disk_gb(hardware) * machine.row.storage_cost / HOURS_PER_MONTH, 6)


def _keep(found: dict[str, VastMachine], machine: VastMachine) -> None:
    known = found.get(machine.offer_id)
    if known is None or (machine.base_usd or math.inf, machine.row.id) < (
        known.base_usd or math.inf,
        known.row.id,
    ):
        found[machine.offer_id] = machine


def _bid_usd(row: OfferRow, factor: float, fixed_usd: float | None) -> float:
    """Return the bid: never more than the machine costs on demand, where nobody outbids it; 0 if there is no
    lowest bid.
    """
    least_usd = row.min_bid or 0.0
    wanted_usd = (
        min(least_usd * factor, max(least_usd, fixed_usd)) if fixed_usd is not None else least_usd * factor
    )
    return max(math.ceil(wanted_usd * 10**4 - 1e-6) / 10**4, BID_USD_MIN) if least_usd else 0.0


def _counts(hardware: HardwareSpec) -> list[int]:
    if hardware.variants:
        return sorted({variant.count for variant in hardware.variants} - {0})
    return [hardware.count] if hardware.gpus else list(SIZES)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:64]


def _hindrance(machine: VastMachine, kind: str, hardware: HardwareSpec) -> str:
    """Return why the machine is not rented; empty if it may be. What the search asked for is checked
    again.
    """
    row = machine.row
    checks = (
        (not machine.base_usd, "has no price"),
        (
            (machine.bid_usd or 0.0) > BID_USD_MAX,
            f"needs a bid above ${BID_USD_MAX:.0f}/h, which the API does not take",
        ),
        ((row.verification or VERIFIED).lower() != VERIFIED, "is not verified"),
        (
            (row.gpu_arch or "nvidia").lower() != "nvidia",
            "has GPUs that are not NVIDIA's, but trainers are installed for CUDA",
        ),
        ((row.cpu_arch or "amd64").lower() != "amd64" or gpus.has_arm64(kind), ARM64_HINDRANCE),
        (
            (row.cuda_max_good or CUDA_MIN) < CUDA_MIN,
            f"has a driver for CUDA {row.cuda_max_good}, but trainers need {CUDA_MIN}",
        ),
        (row.direct_port_count is not None and row.direct_port_count < 1, "has no port of its own for SSH"),
        (
            hardware.image is not None and form_of(hardware.image) is not ImageForm.REFERENCE,
            f"starts only from an image in a registry, not from {hardware.image}",
        ),
    )
    return next((why for applies, why in checks if applies), "")

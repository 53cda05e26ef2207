"""The hosts of the fake, and what they offer: each rents out one, two, four or eight of its GPUs."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
SIZES = (1, 2, 4, 8)
HOURS_PER_MONTH = 720
MB_PER_GB = 1024

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "lt": operator.lt,
    "gte": operator.ge,
    "lte": operator.le,
    "in": lambda value, wanted: value in wanted,
    "notin": lambda value, wanted: value not in wanted,
}


@dataclass(frozen=True)
class Host:
    """A machine. `usd`, `bid_usd`: the price of one GPU per hour on demand, and the lowest bid that runs."""

    id: int
    gpu: str
    gb: int
    gpus: int
    usd: float
    bid_usd: float
    place: str = "Quebec, CA"
    verification: str = "verified"
    ports: int = 100
    cuda: float = 12.9
    disk_gb: float = 2000.0
    storage_usd: float = 0.15
    down_usd_per_gb: float = 0.002
    up_usd_per_gb: float = 0.004
    reliability: float = 0.995
    down_mbps: float = 900.0
    days: float = 60.0
    cpu: str = "amd64"
    maker: str = "nvidia"


@dataclass(frozen=True)
class Ask:
    """What one offer rents: so many GPUs of a host."""

    host: Host
    count: int

    @property
    def id(self) -> int:
        return self.host.id * 100 + self.count

    def usd(self, bid_usd: float | None) -> float:
        return self.host.usd * self.count if bid_usd is None else bid_usd

    def storage_usd(self, disk_gb: float) -> float:
        return disk_gb * self.host.storage_usd / HOURS_PER_MONTH

    def row(self, kind: str, disk_gb: float) -> Json:
        """Return the offer as a search of this type shows it."""
        host = self.host
        least_usd = round(host.bid_usd * self.count, 6)
        base_usd = least_usd if kind == "bid" else round(host.usd * self.count, 6)
        return {
            "id": self.id,
            "ask_contract_id": self.id,
            "machine_id": host.id,
            "host_id": host.id + 7,
            "gpu_name": host.gpu,
            "num_gpus": self.count,
            "gpu_ram": host.gb * MB_PER_GB - 13,
            "gpu_frac": self.count / host.gpus,
            "gpu_arch": host.maker,
            "cpu_arch": host.cpu,
            "cuda_max_good": host.cuda,
            "direct_port_count": host.ports,
            "disk_space": host.disk_gb,
            "storage_cost": host.storage_usd,
            "inet_down": host.down_mbps,
            "inet_down_cost": host.down_usd_per_gb,
            "inet_up": host.down_mbps,
            "inet_up_cost": host.up_usd_per_gb,
            "reliability": host.reliability,
            "reliability2": host.reliability,
            "duration": host.days * 86_400,
            "verification": host.verification,
            "verified": host.verification == "verified",
            "rentable": True,
            "rented": False,
            "is_bid": kind == "bid",
            "min_bid": least_usd,
            "dph_base": base_usd,
            "dph_total": round(base_usd + self.storage_usd(disk_gb), 6),
            "geolocation": host.place,
            "hosting_type": 1,
            "external": False,
            "score": host.reliability / base_usd,
        }


EXAMPLES = (
    Host(1001, "RTX 4090", 24, 8, 0.40, 0.20),
    Host(1002, "RTX 4090", 24, 4, 0.35, 0.22, place="Bavaria, DE", storage_usd=0.3),
    Host(1003, "A100 SXM4", 80, 8, 1.10, 0.60, place="Texas, US"),
    Host(1004, "A100 PCIE", 40, 4, 0.80, 0.40, place=""),
    Host(1005, "H100 SXM", 80, 8, 2.20, 1.30, place="Norway, NO"),
    Host(1006, "RTX 3090", 24, 2, 0.20, 0.12, place="Taiwan, TW", verification="unverified"),
    Host(1007, "RTX 3090", 24, 2, 0.21, 0.11, ports=0),
    Host(1008, "RTX 3090", 24, 2, 0.22, 0.13, cuda=12.2),
)


def asks(hosts: tuple[Host, ...]) -> list[Ask]:
    return [Ask(host, count) for host in hosts for count in SIZES if count <= host.gpus]


def fits(row: Json, filters: Json) -> bool:
    """Return whether the row meets all conditions, such as {"num_gpus": {"in": [1, 2]}}. A number may be
    given as text.
    """
    return all(
        _OPERATORS[name](row[field], _like(row[field], value))
        for field, wanted in filters.items()
        for name, value in wanted.items()
    )


def _like(value: Any, wanted: Any) -> Any:
    return float(wanted) if isinstance(wanted, str) and isinstance(value, int | float) else wanted

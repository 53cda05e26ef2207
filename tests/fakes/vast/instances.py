"""The instances of the fake."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.fakes.prime.machines import Machine
from tests.fakes.vast.asks import Ask

Json = dict[str, Any]


class Status(StrEnum):
    """What Vast calls the actual status of the container."""

    LOADING = "loading"
    RUNNING = "running"
    EXITED = "exited"
    STOPPED = "stopped"
    FROZEN = "frozen"
    REBOOTING = "rebooting"
    UNKNOWN = "unknown"
    OFFLINE = "offline"


@dataclass
class Instance:
    """An instance. `order`: the body of the create call. `end`: the status that replaces the usual ones.
    `is_paused`: it lost its GPUs, and keeps its disk, which is paid for. `stopping_s`: the time at which a
    paused container stops. `hidden`: it is alive, but the list lacks it. `deleted`: it was destroyed.
    """

    number: int
    ask: Ask
    order: Json
    created_s: float
    boot_s: float
    account: int
    end: Status | None = None
    is_paused: bool = False
    stopping_s: float = 0.0
    hidden: bool = False
    deleted: bool = False
    ended_s: float | None = None
    ssh_keys: list[str] = field(default_factory=list)
    surcharge_usd: float = 0.0
    has_ports: bool = True
    ssh_host: str = ""
    machine: Machine | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """Return the id as the port has it; in the API it is a number."""
        return str(self.number)

    @property
    def name(self) -> str:
        return str(self.order.get("label") or "")

    @property
    def bid_usd(self) -> float | None:
        price: float | None = self.order.get("price")
        return price

    @property
    def disk_gb(self) -> float:
        return float(self.order.get("disk") or 8)

    @property
    def costs(self) -> bool:
        """Return whether the instance is paid for, be it only for its disk."""
        return not self.deleted

    @property
    def takes_gpus(self) -> bool:
        return not self.deleted and not self.is_paused

    @property
    def usd(self) -> float:
        """Return the price per hour while it runs."""
        return round(self.ask.usd(self.bid_usd) + self.ask.storage_usd(self.disk_gb) + self.surcharge_usd, 6)

    def status(self, now_s: float) -> Status | None:
        """Return the actual status; None before the host has heard of the instance."""
        if self.end is not None:
            return self.end
        if self.is_paused and now_s >= self.stopping_s:
            return Status.EXITED
        age_s = now_s - self.created_s
        if age_s >= self.boot_s:
            return Status.RUNNING
        return None if age_s < self.boot_s / 2 else Status.LOADING

    def runs(self, now_s: float) -> bool:
        return not self.deleted and self.status(now_s) is Status.RUNNING

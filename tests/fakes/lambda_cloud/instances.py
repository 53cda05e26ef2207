"""The instances of the fake."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.fakes.prime.machines import Machine

Json = dict[str, Any]
ACTIONS = ("migrate", "rebuild", "restart", "cold_reboot", "terminate")


class Status(StrEnum):
    BOOTING = "booting"
    ACTIVE = "active"
    UNHEALTHY = "unhealthy"
    TERMINATED = "terminated"
    TERMINATING = "terminating"
    PREEMPTED = "preempted"


@dataclass
class Instance:
    """An instance. `order`: the body of the launch. `end`: the status that replaces the usual ones.
    `terminated_s`: when it was told to end. `hidden`: it is alive, but the list lacks it. `deleted`: it is
    unknown to the API.
    """

    id: str
    order: Json
    created_s: float
    boot_s: float
    end_s: float
    end: Status | None = None
    terminated_s: float | None = None
    hidden: bool = False
    deleted: bool = False
    ip: str = "192.0.2.10"
    machine: Machine | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return str(self.order["name"])

    @property
    def place(self) -> tuple[str, str]:
        return self.order["instance_type_name"], self.order["region_name"]

    @property
    def costs(self) -> bool:
        """Return whether the instance is paid for until it is told to end."""
        return not self.deleted and self.terminated_s is None and self.end is not Status.TERMINATED

    def status(self, now_s: float) -> Status | None:
        """Return the status; None if it is unknown to the API."""
        if self.deleted or (self.terminated_s is not None and now_s >= self.terminated_s + self.end_s):
            return None
        if self.terminated_s is not None:
            return Status.TERMINATING
        if self.end is not None:
            return self.end
        return Status.ACTIVE if now_s >= self.created_s + self.boot_s else Status.BOOTING

    def runs(self, now_s: float) -> bool:
        return self.status(now_s) is Status.ACTIVE

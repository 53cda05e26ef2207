"""The pods of the fake."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.fakes.prime.machines import Machine

Json = dict[str, Any]
ACTIONS = {"RUNNING": ["stop", "restart", "terminate"], "EXITED": ["start", "terminate"], "TERMINATED": []}


class Status(StrEnum):
    PROVISIONING = "PROVISIONING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"


@dataclass
class Pod:
    """A pod. `order`: the body of the create call. `usd`: the price of the running pod. `end`: the status
    that replaces the usual ones. `hidden`: it is alive, but the list lacks it. `public_ip`: whether port 22
    is reachable.
    """

    id: str
    order: Json
    usd: float
    place: str
    created_s: float
    boot_s: float
    end: Status | None = None
    hidden: bool = False
    public_ip: bool = True
    deleted: bool = False
    machine: Machine | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return str(self.order["name"])

    @property
    def costs(self) -> bool:
        """Return whether the pod is paid for, or stays on the list until it is terminated."""
        return not self.deleted and self.end is not Status.TERMINATED

    def status(self, now_s: float) -> Status:
        if self.end is not None:
            return self.end
        age_s = now_s - self.created_s
        if age_s >= self.boot_s:
            return Status.RUNNING
        return Status.PROVISIONING if age_s < self.boot_s / 2 else Status.STARTING

    def runs(self, now_s: float) -> bool:
        return not self.deleted and self.status(now_s) is Status.RUNNING

"""A pod's life as the API reports it: its course is planned when it is ordered, and may be cut short."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.fakes.clock import iso_ms
from tests.fakes.machine_images import CONDA_OF_THE_TESTS, Image
from tests.fakes.prime.accounts import USER_ID
from tests.fakes.prime.bodies import CreatePod
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.rows import GpuRow

NEVER_S = math.inf
HOST = "127.0.0.1"
DEAD_PORT = 9
"""Port reported for a pod without a machine."""


class SshForm(StrEnum):
    """The format of `sshConnection`. In the last four formats only `ip` and `primePortMapping` give the pod's
    address.
    """

    PLAIN = "user@host -p port"
    COMMAND = "ssh user@host -p port"
    LIST = "[user@host -p port]"
    NULL = "null"
    NULLS = "[null]"
    EMPTY = ""
    NO_HOST = "user@ -p 22"


class End(StrEnum):
    """How an ended pod is reported. Deleted and terminated ones are TERMINATED when queried by id
    (`Terms.forgets_deleted`: 404), not in the list, but in the history, as MISSING ones are, whose ids are
    unknown. One in ERROR stays in the list.
    """

    DELETED = "DELETED"
    TERMINATED = "TERMINATED"
    ERROR = "ERROR"
    MISSING = "MISSING"

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left of the pod except its row in the history."""
        return self is not End.ERROR


@dataclass(frozen=True)
class Plan:
    """The course of a pod, in seconds after the previous event: `NEVER_S` means never.

    `usd_per_hour`: listed and billed instead of the row's price. `install_failure`: the reason with which the
    installation fails. `ssh_hidden_s`: how long an active pod still reports `[null]` as its connection.
    `preempted_s`: after it became active. `deleting_s`: how long it is DELETING. `image`: what it is started
    from.
    """

    provision_s: float = 0.0
    install_s: float = 0.0
    usd_per_hour: float | None = None
    install_failure: str | None = None
    ssh_form: SshForm = SshForm.PLAIN
    ssh_hidden_s: float = 0.0
    preempted_s: float = NEVER_S
    preempted_as: End = End.TERMINATED
    deleting_s: float = 0.0
    image: Image = CONDA_OF_THE_TESTS


@dataclass
class Pod:
    """A pod. `machine` exists from when the pod is active until it ends; nothing that was reported is taken
    back before `ended_s`. `hidden`: it is alive, but the list lacks it.
    """

    pod_id: str
    order: CreatePod
    row: GpuRow
    plan: Plan
    public_key: str
    created_s: float
    usd_per_hour: float
    wallet_id: str
    disks: list[Mapping[str, object]] = field(default_factory=list)
    machine: Machine | None = None
    billed_usd: float = 0.0
    ended_s: float = NEVER_S
    end: End | None = None
    ended_why: str = ""
    hidden: bool = False
    address: str = f"root@{HOST} -p {DEAD_PORT}"

    @property
    def id(self) -> str:
        return self.pod_id

    @property
    def name(self) -> str | None:
        return self.order.pod.name

    @property
    def costs(self) -> bool:
        """Return whether the pod is paid for, or stays on the list until it is deleted."""
        return self.end in (None, End.ERROR)

    def runs(self, now_s: float) -> bool:
        return self.is_active(now_s) and now_s >= self.installed_s

    @property
    def active_s(self) -> float:
        return self.created_s + self.plan.provision_s

    @property
    def installed_s(self) -> float:
        return self.active_s + self.plan.install_s

    @property
    def preempted_s(self) -> float:
        return self.active_s + self.plan.preempted_s

    def end_at(self, now_s: float) -> End | None:
        """Return how it has ended by then, None while it lives."""
        return self.end if now_s >= self.ended_s else None

    def is_active(self, now_s: float) -> bool:
        return self.end_at(now_s) is None and now_s >= self.active_s

    def is_known(self, now_s: float, *, forgets_deleted: bool = False) -> bool:
        """Return whether it can be queried by its id."""
        end = self.end_at(now_s)
        return self.is_listed(now_s) or end is End.TERMINATED or (end is End.DELETED and not forgets_deleted)

    def is_listed(self, now_s: float) -> bool:
        end = self.end_at(now_s)
        return end in (None, End.ERROR) or self._is_deleting(now_s)

    def status(self, now_s: float) -> str:
        end = self.end_at(now_s)
        if self._is_deleting(now_s):
            return "DELETING"
        if end is not None:
            return "ERROR" if end is End.ERROR else "TERMINATED"
        return "PROVISIONING" if now_s < self.active_s else "ACTIVE"

    def installation(self, now_s: float) -> tuple[str, int, str | None]:
        """Return status, percentage, and the reason of a failure."""
        if self.end_at(now_s) is not None:
            return "TERMINATED", 100, None
        if now_s < self.active_s:
            return "PENDING", 0, None
        if now_s < self.installed_s:
            return "ACTIVE", int(100 * (now_s - self.active_s) / self.plan.install_s), None
        failure = self.plan.install_failure
        return ("FINISHED", 100, None) if failure is None else ("ERROR", 50, failure)

    def connection(self, now_s: float) -> tuple[object, object]:
        """Return `sshConnection` and `ip`."""
        line = self.address
        if not self.is_active(now_s):
            return None, None
        if now_s < self.active_s + self.plan.ssh_hidden_s:
            return [None], [None]
        match self.plan.ssh_form:
            case SshForm.PLAIN:
                return line, HOST
            case SshForm.COMMAND:
                return f"ssh {line}", HOST
            case SshForm.LIST:
                return [line], [HOST]
            case SshForm.NULL:
                return None, HOST
            case SshForm.NULLS:
                return [None], [HOST]
            case SshForm.EMPTY:
                return "", HOST
            case SshForm.NO_HOST:
                return f"{line.split('@')[0]}@ -p 22", HOST

    def status_json(self, now_s: float) -> dict[str, object]:
        """Return an entry of `GET /pods/status`."""
        installed, progress, failure = self.installation(now_s)
        ssh, ip = self.connection(now_s)
        return {
            "podId": self.pod_id,
            "providerType": self.row.provider,
            "status": self.status(now_s),
            "sshConnection": ssh,
            "ip": ip,
            "installationStatus": installed,
            "installationFailure": failure,
            "installationProgress": progress,
            "priceHr": self.usd_per_hour,
            "primePortMapping": self._ports(now_s),
        }

    def json(self, now_s: float) -> dict[str, object]:
        """Return the complete pod, as in the responses of create, get and list."""
        known = self.status_json(now_s)
        del known["podId"]
        order = self.order.pod
        resources = {
            "memory": order.memory,
            "disk": order.diskSize,
            "shared_disk": None,
            "vcpus": order.vcpus,
        }
        return known | {
            "id": self.pod_id,
            "userId": USER_ID,
            "teamId": self.order.team_id,
            "walletId": self.wallet_id,
            "name": order.name,
            "type": "HOSTED",
            "createdAt": iso_ms(self.created_s),
            "updatedAt": iso_ms(max(now_s, self.created_s)),
            "terminatedAt": None if self.end_at(now_s) is None else iso_ms(self.ended_s),
            "gpuName": order.gpuType,
            "gpuCount": order.gpuCount,
            "socket": order.socket,
            "stoppedPriceHr": None,
            "provisioningPriceHr": 0.0,
            "environmentType": order.image,
            "customTemplateId": order.customTemplateId,
            "clusterId": None,
            "resources": resources,
            "attachedResources": self.disks,
            "isSpot": self.row.isSpot,
            "autoRestart": order.autoRestart,
        }

    def history_json(self) -> dict[str, object]:
        order = self.order.pod
        return {
            "id": self.pod_id,
            "name": order.name or "",
            "providerType": self.row.provider,
            "provisionedBy": None,
            "type": "HOSTED",
            "createdAt": iso_ms(self.created_s),
            "terminatedAt": iso_ms(self.ended_s),
            "gpuName": order.gpuType,
            "gpuCount": order.gpuCount,
            "socket": order.socket,
            "priceHr": self.usd_per_hour,
            "userId": USER_ID,
            "teamId": self.order.team_id,
            "totalBilledPrice": round(self.billed_usd, 6),
        }

    def _ports(self, now_s: float) -> list[dict[str, str]]:
        if not self.is_active(now_s):
            return []
        return [
            {
                "internal": "22",
                "external": self.address.split()[-1],
                "protocol": "TCP",
                "usedBy": "SSH",
                "description": "SSH",
            }
        ]

    def _is_deleting(self, now_s: float) -> bool:
        return self.end_at(now_s) is End.DELETED and now_s < self.ended_s + self.plan.deleting_s

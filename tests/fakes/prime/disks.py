"""Persistent disks: folders that outlive the pods they are attached to."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.clock import iso_ms
from tests.fakes.prime.accounts import USER_ID
from tests.fakes.prime.bodies import CreateDisk
from tests.fakes.prime.refusals import Refused
from tests.fakes.prime.rows import DiskRow, GpuRow

MOUNT = "workspace"
"""Name of the link to the disk in the pod's own folder; Prime mounts it at /workspace."""


@dataclass
class Disk:
    disk_id: str
    order: CreateDisk
    row: DiskRow
    name: str
    folder: Path
    wallet_id: str
    created_s: float
    billed_usd: float = 0.0
    pods: list[str] = field(default_factory=list)

    @property
    def usd_per_hour(self) -> float:
        return self.order.disk.size * (self.row.spec.pricePerUnit or 0.0)

    def fits(self, row: GpuRow) -> bool:
        return (row.provider, row.dataCenter) == (self.row.provider, self.row.dataCenter)

    def attach(self, pod_id: str) -> None:
        if self.pods and not self.row.isMultinode:
            raise Refused(400, f"Disk {self.disk_id} is already attached to a pod")
        self.pods.append(pod_id)

    def mount(self, home: Path) -> None:
        """Mount the disk under the pod's own folder, as `workspace`; a second one as `workspace-<id>`."""
        at = home / MOUNT
        (at if not at.is_symlink() else home / f"{MOUNT}-{self.disk_id}").symlink_to(self.folder)

    def delete(self) -> None:
        if self.pods:
            raise Refused(409, f"Disk {self.disk_id} is attached to a pod")
        shutil.rmtree(self.folder)

    def attached_json(self) -> dict[str, object]:
        """Return the disk as described in a pod's data."""
        known: dict[str, object] = {
            "resourceType": "DISK",
            "id": self.disk_id,
            "status": "MOUNTED",
            "isDetachable": True,
        }
        return known | {
            "mountPath": f"/{MOUNT}",
            "resourcePath": None,
            "size": self.order.disk.size,
            "isShared": self.row.isMultinode,
        }

    def json(self, now_s: float) -> dict[str, object]:
        row = self.row
        info = {
            "country": row.country,
            "dataCenterId": row.dataCenter,
            "cloudId": row.cloudId,
            "isMultinode": row.isMultinode,
        }
        return {
            "id": self.disk_id,
            "name": self.name,
            "createdAt": iso_ms(self.created_s),
            "updatedAt": iso_ms(now_s),
            "terminatedAt": None,
            "status": "ACTIVE",
            "providerType": row.provider,
            "size": self.order.disk.size,
            "info": info,
            "priceHr": self.usd_per_hour,
            "stoppedPriceHr": None,
            "provisioningPriceHr": 0.0,
            "userId": USER_ID,
            "teamId": self.order.team_id,
            "walletId": self.wallet_id,
            "pods": list(self.pods),
            "clusters": [],
        }


def row_for(order: CreateDisk, rows: Sequence[DiskRow]) -> DiskRow:
    """Return the ordered offer."""
    disk = order.disk
    for row in rows:
        same_place = (
            row.dataCenter == disk.dataCenterId
            and disk.country in (None, row.country)
            and disk.cloudId in (None, row.cloudId)
        )
        if row.provider == order.provider.type and same_place and row.spec.allows(disk.size):
            return row
    raise Refused(400, "No disk of this size is available in this data center")

"""What clients send: bodies of requests, named as on the wire; a key that is not known is refused."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class GpuSocket(StrEnum):
    PCIE = "PCIe"
    SXM2 = "SXM2"
    SXM3 = "SXM3"
    SXM4 = "SXM4"
    SXM5 = "SXM5"
    SXM6 = "SXM6"


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvVar(Body):
    key: str
    value: str


class PodOrder(Body):
    cloudId: str
    gpuType: str
    socket: GpuSocket
    gpuCount: int = Field(gt=0)
    name: str | None = None
    diskSize: int | None = Field(None, gt=0)
    vcpus: int | None = Field(None, gt=0)
    memory: int | None = Field(None, gt=0)
    maxPrice: float | None = None
    image: str | None = "ubuntu_22_cuda_12"
    customTemplateId: str | None = None
    dataCenterId: str | None = None
    country: str | None = None
    security: str | None = None
    envVars: list[EnvVar] | None = None
    jupyterPassword: str | None = None
    sshKeyId: str | None = None
    autoRestart: bool | None = False
    prepaidForHr: float | None = Field(None, gt=0)


class ProviderOrder(Body):
    type: str


class TeamOrder(Body):
    teamId: str


SPELLINGS = {"teamMemberIds": "team_member_ids", "sharedWithTeam": "shared_with_team"}


class CreatePod(Body):
    """Of the last two both spellings are about: the documented one, and that of Prime's own command line."""

    pod: PodOrder
    provider: ProviderOrder
    disks: list[str] | None = None
    team: TeamOrder | None = None
    team_member_ids: list[str] | None = None
    shared_with_team: bool = False

    @model_validator(mode="before")
    @classmethod
    def _spell(cls, body: object) -> object:
        return {SPELLINGS.get(name, name): value for name, value in body.items()} if isinstance(body, dict) else body

    @property
    def team_id(self) -> str | None:
        return self.team.teamId if self.team else None


class DiskOrder(Body):
    size: int = Field(gt=0)
    name: str | None = Field(None, max_length=255)
    country: str | None = None
    cloudId: str | None = None
    dataCenterId: str | None = None


class CreateDisk(Body):
    disk: DiskOrder
    provider: ProviderOrder
    team: TeamOrder | None = None

    @property
    def team_id(self) -> str | None:
        return self.team.teamId if self.team else None


class RenameDisk(Body):
    name: str = Field(max_length=255)


class CreateKey(Body):
    name: str
    publicKey: str


class ChangeKey(Body):
    """There is no way to say that a key shall not be the primary one."""

    isPrimary: Literal[True]

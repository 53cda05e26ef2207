"""What clients send: bodies of requests, named as on the wire. A key that is not known is refused inside `pod` and `disk`, and let pass
elsewhere, as the description has it; so is a word that is in none of its lists."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tests.fakes.prime.words import GPU_TYPES, IMAGES, PROVIDERS, SECURITIES


class GpuSocket(StrEnum):
    PCIE = "PCIe"
    SXM2 = "SXM2"
    SXM3 = "SXM3"
    SXM4 = "SXM4"
    SXM5 = "SXM5"
    SXM6 = "SXM6"


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class StrictBody(Body):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _one_of(words: frozenset[str]) -> AfterValidator:
    def check(word: str) -> str:
        if word not in words:
            raise ValueError("Input should be " + ", ".join(sorted(words)))
        return word

    return AfterValidator(check)


GpuType = Annotated[str, _one_of(GPU_TYPES)]
Image = Annotated[str, _one_of(IMAGES)]
Security = Annotated[str, _one_of(SECURITIES)]
Provider = Annotated[str, _one_of(PROVIDERS)]


class EnvVar(Body):
    key: str
    value: str


class PodOrder(StrictBody):
    cloudId: str
    gpuType: GpuType
    socket: GpuSocket
    gpuCount: int = Field(gt=0)
    name: str | None = None
    diskSize: int | None = Field(None, gt=0)
    vcpus: int | None = Field(None, gt=0)
    memory: int | None = Field(None, gt=0)
    maxPrice: float | None = None
    image: Image | None = "ubuntu_22_cuda_12"
    customTemplateId: str | None = None
    dataCenterId: str | None = None
    country: str | None = None
    security: Security | None = None
    envVars: list[EnvVar] | None = None
    jupyterPassword: str | None = None
    sshKeyId: str | None = None
    autoRestart: bool | None = False
    prepaidForHr: float | None = Field(None, gt=0)


class ProviderOrder(Body):
    type: Provider


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


class DiskOrder(StrictBody):
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

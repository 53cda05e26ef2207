"""Bodies of requests, with field names as sent. An unknown key is refused inside `pod` and `disk`, and
ignored elsewhere, as in Prime's own description; so is a value that is in none of its lists.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

_PROVIDERS = """
    runpod fluidstack lambdalabs hyperstack oblivus cudocompute scaleway tensordock datacrunch latitude crusoecloud massedcompute akash
    primeintellect primecompute dc_impala dc_kudu dc_roan nebius dc_eland dc_wildebeest vultr dc_gnu denvr
"""

_SECURITIES = """
    secure_cloud community_cloud
"""

_IMAGES = """
    ubuntu_22_cuda_12 cuda_12_1_pytorch_2_2 cuda_11_8_pytorch_2_1 cuda_12_1_pytorch_2_3 cuda_12_1_pytorch_2_4 cuda_12_4_pytorch_2_4
    cuda_12_4_pytorch_2_5 cuda_12_4_pytorch_2_6 cuda_12_6_pytorch_2_7 stable_diffusion axolotl bittensor hivemind petals_llama
    vllm_llama_8b vllm_llama_70b vllm_llama_405b custom_template flux prime_rl
"""

_GPU_TYPES = """
    CPU_NODE A10_24GB A100_80GB A100_40GB A30_24GB A40_48GB B200_180GB B300_262GB GB200 GB300 RTX3070_8GB RTX3080_10GB RTX3080Ti_12GB
    RTX3090_24GB RTX3090Ti_24GB RTX4070Ti_12GB RTX4080_16GB RTX4080Ti_16GB RTX4090_24GB RTX5090_32GB H100_80GB H200_96GB GH200_96GB
    H200_141GB GH200_480GB GH200_624GB L4_24GB L40_48GB L40S_48GB RTX4000_8GB RTX5000_16GB RTX6000_24GB RTX8000_48GB RTX2000Ada_16GB
    RTX4000Ada_20GB RTX5000Ada_32GB RTX6000Ada_48GB A2000_6GB A4000_16GB A4500_20GB A5000_24GB A6000_48GB V100_16GB V100_32GB P100_16GB
    T4_16GB P4_8GB P40_24GB RTX_PRO_6000B_96GB
"""

PROVIDERS = frozenset(_PROVIDERS.split())
SECURITIES = frozenset(_SECURITIES.split())
IMAGES = frozenset(_IMAGES.split())
GPU_TYPES = frozenset(_GPU_TYPES.split())


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
    """The order of a pod. The last two fields occur in both spellings: the documented one, and that of
    Prime's own command line.
    """

    pod: PodOrder
    provider: ProviderOrder
    disks: list[str] | None = None
    team: TeamOrder | None = None
    team_member_ids: list[str] | None = None
    shared_with_team: bool = False

    @model_validator(mode="before")
    @classmethod
    def _spell(cls, body: object) -> object:
        return (
            {SPELLINGS.get(name, name): value for name, value in body.items()}
            if isinstance(body, dict)
            else body
        )

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
    """A change of an SSH key. A key cannot be made non-primary."""

    isPrimary: Literal[True]

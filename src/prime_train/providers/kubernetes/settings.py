"""Settings for a cluster: a small YAML file, or the same text in the environment variable itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prime_train.errors import PermanentError
from prime_train.providers.rental.parsing import complaint
from prime_train.providers.rental.user_settings import is_text
from prime_train.spec.image import BASE_IMAGE

TITLE = "Kubernetes"
SETTINGS = "PRIME_TRAIN_KUBERNETES"
"""The variable with the path of the settings file, or with its text."""
KUBECONFIG = "KUBECONFIG"
POD_PYTHON = "PRIME_TRAIN_POD_PYTHON"
FILE_BYTES_MAX = 2**20

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
Labels = dict[str, str]
Usd = Annotated[float, Field(ge=0, le=10_000)]


class SettingsSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Toleration(SettingsSection):
    """A taint that pods tolerate, as in a pod of Kubernetes."""

    key: str = ""
    operator: str = Field(default="Equal", pattern="^(Equal|Exists)$")
    value: str = ""
    effect: str = Field(default="", pattern="^(|NoSchedule|PreferNoSchedule|NoExecute)$")

    def manifest(self) -> dict[str, str]:
        return {name: value for name, value in self.model_dump().items() if value}


class Pool(SettingsSection):
    """Nodes that the cluster adds when pods ask for them, so that there may be none now."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")
    node_selector: Labels = Field(min_length=1)
    """The labels that its nodes have, and no others."""
    gpu: str = ""
    """The kind of GPU, such as H100_80GB; empty: nodes without one."""
    gpus_per_node: int = Field(default=0, ge=0, le=64)
    nodes_max: int = Field(default=1, ge=1, le=10_000)
    spot: bool = False
    region: str = ""
    disk_gib: int = Field(default=100, ge=0, le=10**6)
    """The disk that a pod can have on one of its nodes."""
    usd_per_gpu_hour: Usd = 0.0
    usd_per_hour: Usd = 0.0
    """The price of a machine without a GPU."""
    tolerations: tuple[Toleration, ...] = ()


class KubernetesSettings(SettingsSection):
    """The settings. All of them have defaults."""

    kubeconfig: str | dict[str, Any] = Field(default="", repr=False)
    """The path of a kubeconfig, or its content; empty: that of KUBECONFIG, inside a cluster the service
    account, or else ~/.kube/config.
    """
    context: str = ""
    """The context in the kubeconfig; empty: its current one."""
    namespace: str = Field(default="", pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")
    """The namespace; empty: that of the context, or `default`."""
    image: str = BASE_IMAGE
    """The image for configs without `hardware.image`. It needs Python 3.11 or later with venv, or an
    installed agent.
    """
    image_pull_secrets: tuple[Name, ...] = ()
    service_account: str = ""
    """The service account of the pods; empty: the namespace's default, whose token is not mounted."""
    labels: Labels = Field(default_factory=dict)
    """Further labels of Jobs and pods."""
    annotations: Labels = Field(default_factory=dict)
    node_selector: Labels = Field(default_factory=dict)
    """Labels that a node needs to be used at all."""
    tolerations: tuple[Toleration, ...] = ()
    priority_class: str = ""
    runtime_class: str = Field(default="", pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$")
    """The RuntimeClass of pods with GPUs; empty: the nodes' default runtime."""
    pod_security_context: dict[str, Any] = Field(default_factory=dict)
    """The security context of the pod, as in a pod of Kubernetes."""
    security_context: dict[str, Any] = Field(default_factory=dict)
    """That of its container."""
    queue: str = ""
    """Kueue's local queue; Jobs are then created suspended, and Kueue starts them."""
    storage_class: str = ""
    """The class of a volume that is made for each pod, of the size `hardware.disk_gib`; empty: the node's own
    disk.
    """
    cpus_per_gpu: float = Field(default=4, gt=0, le=1024)
    memory_gib_per_gpu: float = Field(default=16, gt=0, le=10**5)
    cpus: float = Field(default=1, gt=0, le=1024)
    """Processors that a machine without a GPU requests."""
    memory_gib: float = Field(default=2, gt=0, le=10**5)
    grace_s: int = Field(default=120, ge=1, le=3600)
    """Seconds that the agent has after SIGTERM to save; a cloud that takes a spot node away may allow
    less.
    """
    hours_max: float | None = Field(default=None, gt=0, le=10_000)
    """Hours after which Kubernetes itself ends a Job, even if no control plane runs."""
    usd_per_gpu_hour: dict[str, Usd] = Field(default_factory=dict)
    """The price of one GPU in USD per hour by its kind, such as H100_80GB; 0 for kinds that are not named."""
    spot_usd_per_gpu_hour: dict[str, Usd] = Field(default_factory=dict)
    """The same on spot nodes; kinds that are not named cost the same there."""
    usd_per_hour: Usd = 0.0
    """The price of a machine without a GPU."""
    pools: tuple[Pool, ...] = ()


def read_settings(environment: Mapping[str, str]) -> KubernetesSettings:
    """Return the settings that PRIME_TRAIN_KUBERNETES names or contains; the defaults if it is unset. Raises
    PermanentError that names what is wrong, without repeating any value.
    """
    given = environment.get(SETTINGS, "").strip()
    if not given:
        return KubernetesSettings()
    try:
        text = given if is_text(given) else _text_of(Path(given).expanduser())
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise PermanentError(
            f"{SETTINGS}{f', line {mark.line + 1},' if mark else ''} is not YAML; see docs/kubernetes.md"
        ) from None
    if content is not None and not isinstance(content, dict):
        raise PermanentError(
            f"{SETTINGS} must contain settings such as `namespace: training`; see docs/kubernetes.md"
        )
    try:
        settings = KubernetesSettings.model_validate(content or {})
    except ValidationError as error:
        raise PermanentError(f"{SETTINGS}: {complaint(error)}; see docs/kubernetes.md") from None
    if len({pool.name for pool in settings.pools}) < len(settings.pools):
        raise PermanentError(f"{SETTINGS}: pools: two pools have the same name")
    return settings


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise PermanentError(f"the file that {SETTINGS} names cannot be read: {reason}") from None

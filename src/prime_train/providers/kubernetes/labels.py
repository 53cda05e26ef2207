"""What the labels of a node tell: its kind of GPU, whether it is a spot machine, and its region."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from prime_train.estimate import gpus

PRODUCT = "nvidia.com/gpu.product"
MEMORY_MIB = "nvidia.com/gpu.memory"
GKE = "cloud.google.com/gke-accelerator"
KARPENTER, KARPENTER_MIB = "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory"
EKS_AUTO, EKS_AUTO_MIB = "eks.amazonaws.com/instance-gpu-name", "eks.amazonaws.com/instance-gpu-memory"
COREWEAVE, NEBIUS = "gpu.nvidia.com/class", "nebius.com/gpu-name"
GPU_LABELS = (
    PRODUCT,
    GKE,
    KARPENTER,
    EKS_AUTO,
    COREWEAVE,
    NEBIUS,
    "k8s.amazonaws.com/accelerator",
    "skypilot.co/accelerator",
)
"""Labels with the kind of a node's GPUs, in the order in which they are believed: NVIDIA's own, then those of
clouds and autoscalers.
"""
MEMORY_OF = {PRODUCT: MEMORY_MIB, KARPENTER: KARPENTER_MIB, EKS_AUTO: EKS_AUTO_MIB}
SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
SPOT_TAINTS = {"cloud.google.com/gke-spot": "true", "kubernetes.azure.com/scalesetpriority": "spot"}
"""Taints that keep pods off spot nodes, by key and value."""
REGION = "topology.kubernetes.io/region"
ARCHITECTURE = "kubernetes.io/arch"
ARM64 = "arm64"
_GB = re.compile(r"(?<![A-Za-z0-9])([0-9]{1,4})gb\b", re.IGNORECASE)
_PARTS_OF_GPUS = re.compile(r"-SHARED\b|\bMIG\b|-MIG-", re.IGNORECASE)
_WORDS = re.compile(r"\b(nvidia|tesla|mega|edu)\b", re.IGNORECASE)
_NVLINK = re.compile(r"\bNVLINK\b", re.IGNORECASE)
"""CoreWeave's word for boards with NVLink, which other names tell by their socket."""
_GB_OF_NAMES = {
    "nvidia-tesla-a100": 40,
    "nvidia-a100": 40,
    "a100": 40,
    "nvidia-tesla-v100": 16,
    "v100": 16,
    "h200": 141,
}
"""Memory of values that do not name it, where a kind exists with several sizes."""


@dataclass(frozen=True)
class GpuLabel:
    """A node's label with its kind of GPU, and what it means."""

    key: str
    value: str
    kind: str
    socket: str
    gb: int


def gpu_label(labels: Mapping[str, str]) -> GpuLabel | None:
    """Return the label with the kind of GPU; None if there is none, or if it is about parts of GPUs."""
    for key in GPU_LABELS:
        value = labels.get(key, "")
        if not value:
            continue
        if _PARTS_OF_GPUS.search(value):
            return None
        return GpuLabel(key, value, *_kind_of(value, _gb_of(value, labels.get(MEMORY_OF.get(key, ""), ""))))
    return None


def is_spot(labels: Mapping[str, str]) -> bool:
    return any(labels.get(key) == value for key, value in SPOT_LABELS.items())


def _gb_of(value: str, mib: str) -> int:
    if mib.isascii() and mib.isdigit() and len(mib) < 10:
        return round(int(mib) / 1024)
    named = _GB.search(value)
    return int(named[1]) if named else _GB_OF_NAMES.get(value.lower(), 0)


def _kind_of(value: str, gb: int) -> tuple[str, str, int]:
    """Return kind, socket and memory in GB. A kind that exists with one size of memory has that size, even if
    no label tells it.
    """
    words = _NVLINK.sub("SXM", value.replace("-", " ").replace("_", " "))
    name = " ".join(_WORDS.sub(" ", _GB.sub(" ", words)).split())
    found = gpus.from_makers_name(name, gb)
    if gb:
        return found.kind, found.socket, gb
    sizes = {
        gpus.named_gb(kind) for kind in gpus.RENTED if gpus.plain(gpus.family(kind)) == gpus.plain(found.kind)
    }
    if len(sizes) == 1 and (only := sizes.pop()):
        return gpus.from_makers_name(name, only).kind, found.socket, only
    return found.kind, found.socket, 0

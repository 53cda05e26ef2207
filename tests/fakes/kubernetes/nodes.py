"""Nodes of the fake, and which pods fit on them."""

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
UNITS = {"m": 1e-3, "Mi": 2.0**20, "Gi": 2.0**30, "": 1.0}


def node(
    name: str,
    gpus: int = 0,
    labels: Mapping[str, str] | None = None,
    *,
    taints: Iterable[Json] = (),
    cpus: int = 64,
    memory_gib: int = 512,
) -> Json:
    """Return a node that is ready."""
    resources = {"cpu": str(cpus), "memory": f"{memory_gib}Gi", "ephemeral-storage": "1000Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {"kubernetes.io/arch": "amd64", **(labels or {})},
        },
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "allocatable": {**resources, **({GPU: str(gpus)} if gpus else {})},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
SPOT = {"cloud.google.com/gke-spot": "true"}
REGION = {"topology.kubernetes.io/region": "us-east5"}
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
SPOT_TAINT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}

EXAMPLES = (
    node("h100-spot", 8, {**H100, **SPOT, **REGION}, taints=(GPU_TAINT, SPOT_TAINT)),
    node("h100", 8, {**H100, **REGION}, taints=(GPU_TAINT,)),
    node(
        "l4",
        4,
        {"cloud.google.com/gke-accelerator": "nvidia-l4", **REGION},
        taints=(GPU_TAINT,),
        cpus=48,
        memory_gib=192,
    ),
    node(
        "a100",
        8,
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920", **REGION},
    ),
    node("plain", 0, REGION, cpus=16, memory_gib=64),
    node(
        "of-others",
        8,
        {**H100, **REGION},
        taints=({"key": "team", "value": "other", "effect": "NoSchedule"},),
    ),
)


def amount(text: str) -> float:
    """Return a quantity, of the few forms that the provider and these nodes write."""
    digits = text.rstrip("mMGi")
    return float(digits) * UNITS[text[len(digits) :]]


def requests_of(pod: Json) -> dict[str, float]:
    total: dict[str, float] = {"pods": 1.0}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        for name, text in {**resources.get("limits", {}), **resources.get("requests", {})}.items():
            total[name] = total.get(name, 0.0) + amount(str(text))
    return total


def why_unfit(pod: Json, on: Json, others: Iterable[Json]) -> str:
    """Return why the pod cannot run on the node beside the others; empty if it can."""
    labels = on["metadata"]["labels"]
    spec = pod["spec"]
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return "node selector"
    required = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    if required and not any(
        all(_holds(each, labels) for each in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    ):
        return "node affinity"
    for taint in on["spec"].get("taints", ()):
        if not any(_tolerates(each, taint) for each in spec.get("tolerations", ())):
            return "untolerated taint"
    left = {name: amount(text) for name, text in on["status"]["allocatable"].items()}
    for other in others:
        for name, value in requests_of(other).items():
            left[name] = left.get(name, 0.0) - value
    return next(
        (
            f"Insufficient {name}"
            for name, value in requests_of(pod).items()
            if left.get(name, 0.0) < value - 1e-6
        ),
        "",
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    is_in = labels.get(expression["key"]) in expression["values"]
    return is_in if expression["operator"] == "In" else not is_in


def _tolerates(toleration: Json, taint: Json) -> bool:
    if (
        toleration.get("key", taint["key"]) != taint["key"]
        or toleration.get("effect", taint["effect"]) != taint["effect"]
    ):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")

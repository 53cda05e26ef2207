"""A Job of Kubernetes whose pods replace each other, with ConfigMaps that contain what they need."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from prime_train.errors import UsageError
from prime_train.interop.export.machine_files import HEADER
from prime_train.interop.export.task import Task, Written, kubernetes_text
from prime_train.providers.kubernetes.manifests import NO_VOLUMES, claim_mounts, claims
from prime_train.spec.choices import Spot
from prime_train.spec.image import BASE_IMAGE
from prime_train.spec.overrides import config_text
from prime_train.spec.spec import VolumeSpec

FILES, DISK = "/etc/prime-train", "/workspace"
PRODUCT = "nvidia.com/gpu.product"
GPU = "nvidia.com/gpu"
MAP_BYTES_MAX = 700_000
FILES_BYTES_MAX = 8 * 2**20
"""The most that is put into ConfigMaps, which are kept in the memory of every API server."""
FAILURES_MAX = 6
"""How many pods may fail for reasons that are neither a disruption nor the end of the training."""
FAILED = 1
"""The exit code with which the training has failed for good."""
_SPOT_TAINTS = (("cloud.google.com/gke-spot", "true"), ("kubernetes.azure.com/scalesetpriority", "spot"))


def kubernetes_job(task: Task) -> Written:
    """Return the Job. Raises UsageError if the code is too large for ConfigMaps."""
    if task.contents.size > FILES_BYTES_MAX:
        mib, most = task.contents.size / 2**20, FILES_BYTES_MAX // 2**20
        raise UsageError(
            f"the code and the agent have {mib:.1f} MiB together, and at most {most} MiB are put into "
            "ConfigMaps",
            fix="set trainer.code.repo, so that the machine clones the code, or leave files out with "
            ".gitignore",
        )
    maps = _maps(task)
    secret = f"{task.name}-secrets"
    content = "---\n".join(
        config_text(one) for one in (*maps, _job(task, [one["metadata"]["name"] for one in maps], secret))
    )
    given = "".join(f' --from-literal={name}="${name}"' for name in task.secrets)
    create = (f"kubectl create secret generic {secret}{given}",) if task.secrets else ()
    notes = (
        ("the config's highest price is not known to Kubernetes",)
        if task.spec.hardware.usd_per_hour_max is not None
        else ()
    )
    return Written("job.yaml", HEADER + content, (*create, "kubectl apply -f job.yaml"), notes=notes)


def _maps(task: Task) -> list[dict[str, Any]]:
    """Return ConfigMaps with all files, each as full as one may be."""
    groups: list[dict[str, bytes]] = []
    room = 0
    for name, data in task.contents.files.items():
        if len(data) > room:
            groups.append({})
            room = MAP_BYTES_MAX
        groups[-1][name] = data
        room -= len(data)
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{task.name}-{number}", "labels": _labels(task)},
            "binaryData": {name: base64.b64encode(data).decode() for name, data in files.items()},
        }
        for number, files in enumerate(groups)
    ]


def _labels(task: Task) -> dict[str, str]:
    return {"app.kubernetes.io/name": "prime-train", "app.kubernetes.io/instance": task.name}


def _job(task: Task, maps: Sequence[str], secret: str) -> dict[str, Any]:
    rules = [
        # The first rule that matches counts: a pod that was taken away is replaced, however its process
        # ended.
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [FAILED]}},
    ]
    spec = {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": FAILURES_MAX,
        "podFailurePolicy": {"rules": rules},
        # The next pod starts once the last one has ended, so that no two train at once.
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": _labels(task)}, "spec": _pod(task, maps, secret)},
    }
    metadata = {"name": task.name, "labels": _labels(task)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _pod(task: Task, maps: Sequence[str], secret: str) -> dict[str, Any]:
    disk = f"{task.spec.hardware.disk_gib}Gi"
    variables: list[dict[str, Any]] = [
        {"name": name, "value": kubernetes_text(value)} for name, value in task.environment.items()
    ]
    variables += [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}} for name in task.secrets
    ]
    container = {
        "name": "train",
        "image": task.image or BASE_IMAGE,
        "command": ["/bin/sh", "-c", kubernetes_text(task.command(FILES, DISK))],
        "env": variables,
        "workingDir": DISK,
        "resources": {
            "requests": {"ephemeral-storage": disk},
            **({"limits": {GPU: str(task.gpus)}} if task.gpus else {}),
        },
        "volumeMounts": [
            {"name": "files", "mountPath": FILES, "readOnly": True},
            {"name": "workspace", "mountPath": DISK},
            {"name": "shm", "mountPath": "/dev/shm"},
            *claim_mounts(_volumes(task)),
        ],
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": task.grace_s,
        # Another process collects what dies orphaned, and a signal reaches prime-train, which is not process
        # 1 then.
        "shareProcessNamespace": True,
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [
            {"name": "files", "projected": {"sources": [{"configMap": {"name": name}} for name in maps]}},
            {"name": "workspace", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            *claims(_volumes(task)),
        ],
    }
    tolerations = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}] if task.gpus else []
    if task.spec.hardware.spot is not Spot.NEVER:
        tolerations += [
            {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
            for key, value in _SPOT_TAINTS
        ]
    return {**pod, **({"tolerations": tolerations} if tolerations else {})}


def _volumes(task: Task) -> Mapping[str, VolumeSpec]:
    """Return the claims to mount: volumes of another provider are none of the cluster's."""
    return task.spec.hardware.volumes if task.spec.hardware.provider == "kubernetes" else NO_VOLUMES

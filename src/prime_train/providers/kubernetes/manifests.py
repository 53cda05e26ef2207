"""The Job of one attempt, and the Secrets that its container waits for.

No two agents ever work for one attempt: a Job makes one pod and no second one, and the name of the ticket's
file contains the uid of the pod that it was written for. A container of any other pod finds no ticket and
exits, whatever made it.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_train.providers.kubernetes.models import KubernetesJob
from prime_train.providers.kubernetes.offers import KubernetesMachine
from prime_train.providers.kubernetes.resources import CPU, DISK, GPU, MEMORY
from prime_train.providers.kubernetes.settings import KubernetesSettings
from prime_train.runs.wire import Ticket
from prime_train.spec.image_contents import FOLDER
from prime_train.spec.spec import VolumeSpec

MANAGED_BY, US = "app.kubernetes.io/managed-by", "prime-train"
CONTROL_PLANE = "prime-train/control-plane"
NAME, OFFER, USD, SECRET, DIGEST, PARTS = (
    f"prime-train/{word}" for word in ("name", "offer", "usd-per-hour", "secret", "agent", "agent-parts")
)
"""Annotations of a Job and its pod."""
QUEUE = "kueue.x-k8s.io/queue-name"
SELECTOR = f"{MANAGED_BY}={US}"
CONTAINER = "agent"
JOB_NAME_CHARS_MAX = 63
TTL_S = 24 * 3600
"""Seconds for which an ended Job remains, so that a watcher that was down sees how it ended."""
NO_VOLUMES: Mapping[str, VolumeSpec] = {}
CLAIM = "volume-"
"""How the names of volumes begin that are claims of the config."""
FILES, DISK_FOLDER = "/var/run/prime-train", "/workspace"
POD_UID = "POD_UID"
PART_BYTES_MAX = 900_000
"""Bytes of the agent's wheel in one Secret; Kubernetes allows 1 MiB in each."""
READABLE = 0o444


@dataclass(frozen=True)
class Agent:
    """How the container becomes the agent. `python`: an interpreter in the image that has the agent; empty:
    it is installed from `files`, unless the image has just these. `digest`: the hash over them.
    """

    python: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    digest: str = ""

    @property
    def secrets(self) -> list[dict[str, bytes]]:
        """Return the files by Secret; the ticket is one more."""
        if self.python:
            return []
        found: list[dict[str, bytes]] = []
        size = PART_BYTES_MAX
        for name, data in self._parts():
            if not found or size + len(data) > PART_BYTES_MAX:
                found.append({})
                size = 0
            found[-1][name] = data
            size += len(data)
        return found

    def command(self) -> list[str]:
        """Return the container's command. What runs in the end is the agent itself, which a signal to the
        container has to reach.
        """
        ticket, attempt = f"{FILES}/$({POD_UID}).json", f"{DISK_FOLDER}/attempt"
        if self.python:
            return [self.python, "-I", "-m", "prime_agent.main", "--ticket", ticket, "--disk", attempt]
        return [
            "/bin/sh",
            f"{FILES}/bring_up.sh",
            "first",
            "-",
            self.digest,
            "",
            FOLDER,
            ticket,
            FILES,
            DISK_FOLDER,
        ]

    def _parts(self) -> Iterator[tuple[str, bytes]]:
        for name, data in self.files:
            if name.endswith(".whl"):
                yield "wheel-name", name.encode()
                for number, start in enumerate(range(0, len(data), PART_BYTES_MAX)):
                    yield f"wheel.{number:02}", data[start : start + PART_BYTES_MAX]
            else:
                yield name, data


def job_name(marked: str) -> str:
    """Return the Job's name for a pod's name with its mark: the same for the same, and short enough to be a
    label.
    """
    if len(marked) <= JOB_NAME_CHARS_MAX:
        return marked
    digest = hashlib.sha256(marked.encode()).hexdigest()[:16]
    return f"{marked[: JOB_NAME_CHARS_MAX - len(digest) - 1].rstrip('-')}-{digest}"


def job(
    marked: str,
    mark: str,
    machine: KubernetesMachine,
    image: str,
    agent: Agent,
    secret: str,
    settings: KubernetesSettings,
    volumes: Mapping[str, VolumeSpec] = NO_VOLUMES,
) -> dict[str, Any]:
    """Return the Job. `secret`: the name that those of its Secrets begin with; `volumes`: the claims to
    mount, by their paths.
    """
    labels = {**settings.labels, MANAGED_BY: US, **({CONTROL_PLANE: mark} if mark else {})}
    annotations = {
        **settings.annotations,
        NAME: marked,
        OFFER: machine.offer.offer_id,
        USD: f"{machine.offer.usd_per_hour:.6f}",
        SECRET: secret,
        DIGEST: agent.digest,
        PARTS: str(len(agent.secrets)),
    }
    spec: dict[str, Any] = {
        "completions": 1,
        "parallelism": 1,
        # The control plane replaces machines, by a Job of its own with an identity of its own; a pod that has
        # failed in any way is never followed by another one. So disruptions are not ignored here, as is
        # usual: then the Job would make a second pod.
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
            ],
        },
        # A pod that is being deleted has not ended: it counts, and the Job has not failed, until its
        # containers have.
        "podReplacementPolicy": "Failed",
        "ttlSecondsAfterFinished": TTL_S,
        "template": {
            "metadata": {"labels": labels, "annotations": {**annotations, **_NOT_DISRUPTED}},
            "spec": _pod_spec(machine, image, agent, secret, settings, volumes),
        },
    }
    if settings.hours_max is not None:
        spec["activeDeadlineSeconds"] = int(settings.hours_max * 3600)
    if settings.queue:
        spec["suspend"] = True
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(marked),
            "labels": {**labels, **({QUEUE: settings.queue} if settings.queue else {})},
            "annotations": annotations,
        },
        "spec": spec,
    }


def secrets(
    of: KubernetesJob, name: str, pod_uid: str, ticket: Ticket, agent: Agent, bring_up: bytes
) -> Iterator[dict[str, Any]]:
    """Yield the Secrets that the container waits for, that with the ticket last. They belong to the Job, and
    are deleted with it.
    """
    for number, files in enumerate(agent.secrets, start=1):
        yield _secret(of, f"{name}-{number}", files)
    script = {} if agent.python else {"bring_up.sh": bring_up}
    yield _secret(of, f"{name}-0", {f"{pod_uid}.json": ticket.model_dump_json().encode(), **script})


_NOT_DISRUPTED = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations that keep autoscalers from moving a pod elsewhere to save a node."""


def _pod_spec(
    machine: KubernetesMachine,
    image: str,
    agent: Agent,
    secret: str,
    settings: KubernetesSettings,
    volumes: Mapping[str, VolumeSpec],
) -> dict[str, Any]:
    need, selector = machine.need, settings.node_selector
    disk = f"{int(need.disk_bytes)}"
    requests = {
        CPU: f"{int(need.cpus * 1000)}m",
        MEMORY: f"{int(need.memory_bytes)}",
        **({DISK: disk} if need.disk_bytes else {}),
    }
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "command": agent.command(),
        "env": [
            {"name": POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            *([{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"}] if need.gpus else []),
        ],
        "workingDir": DISK_FOLDER,
        "resources": {"requests": requests, **({"limits": {GPU: str(need.gpus)}} if need.gpus else {})},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "prime-train", "mountPath": FILES, "readOnly": True},
            {"name": "workspace", "mountPath": DISK_FOLDER},
            {"name": "shm", "mountPath": "/dev/shm"},
            *claim_mounts(volumes),
        ],
    }
    if settings.security_context:
        container["securityContext"] = settings.security_context
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": settings.grace_s,
        # The sandbox's own first process collects what dies orphaned; the agent does not.
        "shareProcessNamespace": True,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [
            # None of these Secrets is optional, so the kubelet starts the container once all of them are
            # there.
            {
                "name": "prime-train",
                "projected": {
                    "defaultMode": READABLE,
                    "sources": [
                        {"secret": {"name": f"{secret}-{number}"}} for number in range(len(agent.secrets) + 1)
                    ],
                },
            },
            {"name": "workspace", **_workspace(settings, machine)},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            *claims(volumes),
        ],
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _node_terms(machine.terms)}
        },
        "tolerations": [each.manifest() for each in machine.tolerations],
    }
    if settings.service_account:
        spec["serviceAccountName"] = settings.service_account
    else:
        spec["automountServiceAccountToken"] = False
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.runtime_class and need.gpus:
        spec["runtimeClassName"] = settings.runtime_class
    if settings.pod_security_context:
        spec["securityContext"] = settings.pod_security_context
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    return {**spec, **({"nodeSelector": selector} if selector else {})}


def claims(volumes: Mapping[str, VolumeSpec]) -> Iterator[dict[str, Any]]:
    """Yield each claim once, however many parts of it are mounted, because the kubelet does not attach one
    twice to a pod. One that is only read is attached so, which some kinds of volumes require if several nodes
    have them.
    """
    names = list(dict.fromkeys(volume.name for volume in volumes.values()))
    for number, name in enumerate(names):
        is_read_only = all(volume.read_only for volume in volumes.values() if volume.name == name)
        claim = {"claimName": name, **({"readOnly": True} if is_read_only else {})}
        yield {"name": f"{CLAIM}{number}", "persistentVolumeClaim": claim}


def claim_mounts(volumes: Mapping[str, VolumeSpec]) -> Iterator[dict[str, Any]]:
    names = list(dict.fromkeys(volume.name for volume in volumes.values()))
    for path, volume in volumes.items():
        part = {"subPath": volume.sub_path} if volume.sub_path else {}
        yield {
            "name": f"{CLAIM}{names.index(volume.name)}",
            "mountPath": path,
            "readOnly": volume.read_only,
            **part,
        }


def _workspace(settings: KubernetesSettings, machine: KubernetesMachine) -> dict[str, Any]:
    if not machine.volume_gib:
        return {"emptyDir": {}}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": settings.storage_class,
        "resources": {"requests": {"storage": f"{machine.volume_gib}Gi"}},
    }
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def _node_terms(terms: Sequence[Sequence[Mapping[str, object]]]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}


def _secret(of: KubernetesJob, name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": of.metadata.name, "uid": of.metadata.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {MANAGED_BY: US}, "ownerReferences": [owner]},
        "immutable": True,
        "data": {key: b64encode(data).decode() for key, data in files.items()},
    }

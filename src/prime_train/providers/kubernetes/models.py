"""Models of the objects of Kubernetes' API, limited to the fields that are used here.

Their names become parts of URLs. What a field's value means, such as a reason, is decided where it is used.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WrapValidator

from prime_train.providers.rental.parsing import ResponsePart, TextOrNone, or_none, second

NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
UID = r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"
JOB_NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
LABEL = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_POD_ID = re.compile(rf"({JOB_NAME})\.({UID})")

Texts = Annotated[dict[str, str], WrapValidator(lambda value, read: or_none(value, read) or {})]
Objects = Annotated[dict[str, Any], WrapValidator(lambda value, read: or_none(value, read) or {})]


class Metadata(ResponsePart):
    name: str = Field(pattern=f"^{NAME}$")
    uid: str = Field(pattern=f"^{UID}$")
    namespace: TextOrNone = None
    creationTimestamp: TextOrNone = None
    deletionTimestamp: TextOrNone = None
    labels: Texts = Field(default_factory=dict)
    annotations: Texts = Field(default_factory=dict)

    @property
    def created_s(self) -> int:
        return second(self.creationTimestamp)

    @property
    def is_ending(self) -> bool:
        return self.deletionTimestamp is not None


class Condition(ResponsePart):
    type: str
    status: str
    reason: TextOrNone = None
    message: TextOrNone = None
    lastTransitionTime: TextOrNone = None

    @property
    def holds(self) -> bool:
        return self.status == "True"

    @property
    def since_s(self) -> int:
        return second(self.lastTransitionTime)


Conditions = Annotated[tuple[Condition, ...], WrapValidator(lambda value, read: or_none(value, read) or ())]


class JobStatus(ResponsePart):
    conditions: Conditions = ()
    startTime: TextOrNone = None


class JobSpec(ResponsePart):
    suspend: bool | None = None
    template: Objects = Field(default_factory=dict)


class KubernetesJob(ResponsePart):
    metadata: Metadata
    spec: JobSpec
    status: JobStatus = JobStatus()

    @property
    def pod_id(self) -> str:
        return f"{self.metadata.name}.{self.metadata.uid}"

    def condition(self, *types: str) -> Condition | None:
        """Return the first condition of one of these types that holds."""
        return next((each for each in self.status.conditions if each.type in types and each.holds), None)


class ContainerStatus(ResponsePart):
    state: Objects = Field(default_factory=dict)

    def text(self, state: str, field: str) -> str:
        """Return a field of this state (waiting, terminated); empty if the container is in another one."""
        found = self.state.get(state)
        return str(found.get(field) or "") if isinstance(found, dict) else ""


ContainerStatuses = Annotated[
    tuple[ContainerStatus, ...], WrapValidator(lambda value, read: or_none(value, read) or ())
]


class PodStatusPart(ResponsePart):
    phase: TextOrNone = None
    conditions: Conditions = ()
    containerStatuses: ContainerStatuses = ()
    initContainerStatuses: ContainerStatuses = ()


class PodSpec(ResponsePart):
    nodeName: TextOrNone = None
    containers: Annotated[list[Any], WrapValidator(lambda value, read: or_none(value, read) or [])] = Field(
        default_factory=list
    )
    initContainers: Annotated[list[Any], WrapValidator(lambda value, read: or_none(value, read) or [])] = (
        Field(default_factory=list)
    )
    overhead: Objects = Field(default_factory=dict)


class KubernetesPod(ResponsePart):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatusPart = PodStatusPart()

    @property
    def job_uid(self) -> str:
        """Return the uid of the Job that made the pod; empty if none did."""
        return self.metadata.labels.get("batch.kubernetes.io/controller-uid", "")

    @property
    def job_name(self) -> str:
        return self.metadata.labels.get("batch.kubernetes.io/job-name", "")

    @property
    def has_ended(self) -> bool:
        """Return whether all its containers have ended, for good."""
        return self.status.phase in ("Succeeded", "Failed")

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == kind), None)


class Taint(ResponsePart):
    key: str
    effect: str
    value: TextOrNone = None


class NodeSpec(ResponsePart):
    unschedulable: bool | None = None
    taints: Annotated[
        tuple[Taint, ...], WrapValidator(lambda value, read: read(value) if value is not None else ())
    ] = ()


class NodeStatus(ResponsePart):
    allocatable: Objects = Field(default_factory=dict)
    conditions: Conditions = ()


def _labels(value: object) -> dict[str, str]:
    """Return the labels that can be any; their values become parts of the ids of offers."""
    items = value.items() if isinstance(value, dict) else ()
    return {
        key: text
        for key, text in items
        if isinstance(key, str) and isinstance(text, str) and re.fullmatch(LABEL, text)
    }


class NodeMetadata(ResponsePart):
    name: str = Field(pattern=f"^{NAME}$")
    labels: Annotated[dict[str, str], BeforeValidator(_labels)] = Field(default_factory=dict)


class Node(ResponsePart):
    metadata: NodeMetadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        return not self.spec.unschedulable and any(
            each.type == "Ready" and each.holds for each in self.status.conditions
        )


class Namespace(ResponsePart):
    metadata: Metadata


def parse_pod_id(text: str) -> tuple[str, str] | None:
    """Return name and uid of the Job from a pod's id; None for anything else, which must not become a part of
    a URL.
    """
    found = _POD_ID.fullmatch(text)
    return (found[1], found[3]) if found else None

"""The orders of pods in GraphQL, which are worded as version 1 of RunPod's API was."""

import re
from typing import Any

import yaml

Json = dict[str, Any]
Types = dict[str, type | tuple[type, ...]]
BOTH: Types = {
    "name": str,
    "imageName": str,
    "templateId": str,
    "gpuTypeId": str,
    "gpuCount": int,
    "cloudType": str,
    "containerDiskInGb": int,
    "volumeInGb": int,
    "ports": str,
    "startSsh": bool,
    "env": list,
    "allowedCudaVersions": list,
    "supportPublicIp": bool,
}
"""What both inputs take. That spot orders take `supportPublicIp` as well is known from SkyPilot 0.14.1 and
dstack, which send it.
"""
ON_DEMAND: Types = {
    "minVcpuCount": int,
    "minMemoryInGb": int,
    "minDownload": int,
    "minUpload": int,
    **dict.fromkeys(("dataCenterId", "dockerArgs", "countryCode", "volumeMountPath", "networkVolumeId"), str),
}
FIELDS: dict[str, Types] = {
    "PodRentInterruptableInput": {**BOTH, "bidPerGpu": (int, float)},
    "PodFindAndDeployOnDemandInput": {**BOTH, **ON_DEMAND},
}
"""Those fields of the input types that a caller may be expected to send, and what each takes; from public
clients, November 2026.
"""


def read(query: str) -> Json:
    """Return the input that a mutation contains as text; what GraphQL writes there is YAML as well."""
    found = re.search(r"input: (\{.*\})\s*\) \{", query, re.DOTALL)
    assert found is not None
    return {name: value for name, value in yaml.safe_load(found[1]).items() if value is not None}


def fault(order: Json, kind: str) -> str:
    """Return why GraphQL refuses the order: a field that the input type does not have, or a value of another
    type. Empty if it does not.
    """
    unknown = sorted(order.keys() - FIELDS[kind])
    if unknown:
        return f'Field "{unknown[0]}" is not defined by type "{kind}".'
    wrong = sorted(name for name, value in order.items() if not isinstance(value, FIELDS[kind][name]))
    return f'Variable "$input" got invalid value {order[wrong[0]]!r} at "input.{wrong[0]}".' if wrong else ""


def in_v2(order: Json, cloud: str) -> Json:
    """Return the order in the words of version 2."""
    return {
        "name": order["name"],
        "image": order.get("imageName", ""),
        "gpu": {"id": order["gpuTypeId"], "count": order["gpuCount"]},
        "cloud": cloud,
        "disk": order["containerDiskInGb"],
        "ports": [port for port in order.get("ports", "").split(",") if port],
        "env": {row["key"]: row["value"] for row in order.get("env", ())},
        **({"dataCenterIds": [order["dataCenterId"]]} if "dataCenterId" in order else {}),
    }

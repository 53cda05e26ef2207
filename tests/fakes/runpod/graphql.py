"""The queries and mutations of GraphQL that RunPod's own Python client and this project's adapter send.

It is no GraphQL server: it recognises the few documents by their fields, and answers with more fields than were asked for.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.runpod.pods import Pod
    from tests.fakes.runpod.server import FakeRunPod

PATH = "/graphql"
Json = dict[str, Any]


def answer(fake: "FakeRunPod", query: str, owner: str) -> Json:
    """Return the answer to a document of the account `owner`; one that is not recognised is answered with an error, and with status 200 as
    RunPod does."""
    ended = re.search(r'podTerminate\(input: \{ podId: "([^"]*)"', query)
    one = re.search(r'\bpod\(input: \{podId: "([^"]*)"', query)
    if ended:
        pod = _known(fake, ended[1])
        if pod is None:
            return _error("pod not found to terminate")
        fake.terminate(pod)
        return {"data": {"podTerminate": None}}
    if one:
        pod = _known(fake, one[1])
        return {"data": {"pod": None if pod is None else _shown(fake, pod)}}
    if "gpuTypes" in query:
        wanted = re.search(r'gpuTypes\(input: \{id: "([^"]*)"', query)
        kinds = [kind for kind in fake.kinds if not wanted or kind.id == wanted[1]]
        return {"data": {"gpuTypes": [{"id": kind.id, "displayName": kind.name, "memoryInGb": kind.memory} for kind in kinds]}}
    if "myself" in query:
        return {"data": {"myself": _myself(fake, owner)}}
    return _error("Cannot query this field")


def _myself(fake: "FakeRunPod", owner: str) -> Json:
    spent = sum(pod.usd for pod in fake.pods if pod.costs and pod.end is None)
    return {
        "id": owner,
        "pubKey": "",
        "networkVolumes": [],
        "clientBalance": fake.balance_usd,
        "currentSpendPerHr": round(spent, 6),
        "pods": [_shown(fake, pod) for pod in fake.pods if not pod.deleted and not pod.hidden],
    }


def _shown(fake: "FakeRunPod", pod: "Pod") -> Json:
    status = pod.status(fake.now_s()).value
    return {
        "id": pod.id,
        "name": pod.name,
        "desiredStatus": status if status in ("RUNNING", "EXITED", "TERMINATED") else "CREATED",
        "costPerHr": pod.usd,
        "gpuCount": pod.order["gpu"].get("count", 1),
        "imageName": pod.order.get("image", ""),
        "env": [f"{name}={value}" for name, value in pod.order.get("env", {}).items()],
    }


def _known(fake: "FakeRunPod", pod_id: str) -> "Pod | None":
    return next((pod for pod in fake.pods if pod.id == pod_id and not pod.deleted), None)


def _error(message: str) -> Json:
    return {"errors": [{"message": message}], "data": None}

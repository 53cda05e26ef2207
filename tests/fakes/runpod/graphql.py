"""The queries and mutations of GraphQL that RunPod's own Python client and this project's adapter send.

It is no GraphQL server: it recognises the few documents by their fields, and answers with more fields than were asked for.
"""

import re
from typing import TYPE_CHECKING, Any

from tests.fakes.runpod.catalogue import COMMUNITY, SECURE, Kind

if TYPE_CHECKING:
    from tests.fakes.runpod.pods import Pod
    from tests.fakes.runpod.server import FakeRunPod

PATH = "/graphql"
QUERY_CHARS_SHOWN = 200
SPOT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "imageName": str,
    "templateId": str,
    "gpuTypeId": str,
    "gpuCount": int,
    "bidPerGpu": (int, float),
    "cloudType": str,
    "containerDiskInGb": int,
    "volumeInGb": int,
    "ports": str,
    "startSsh": bool,
    "env": list,
    "allowedCudaVersions": list,
}
"""Those fields of PodRentInterruptableInput that a caller may be expected to send, and what each takes; from public clients, November
2026."""
Json = dict[str, Any]


def answer(fake: "FakeRunPod", query: str, owner: str, variables: Json | None = None) -> Json:
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
    if "podRentInterruptable" in query and fake.terms.has_spot:
        return _rent(fake, (variables or {})["input"])
    bids = re.search(r"lowestPrice\(input: \{gpuCount: (\d+), secureCloud: (true|false)\}\)", query)
    if bids and fake.terms.has_spot:
        cloud = SECURE if bids[2] == "true" else COMMUNITY
        return {"data": {"gpuTypes": [_with_bid(fake, kind, int(bids[1]), cloud) for kind in fake.kinds]}}
    if "gpuTypes" in query and not bids:
        wanted = re.search(r'gpuTypes\(input: \{id: "([^"]*)"', query)
        kinds = [kind for kind in fake.kinds if not wanted or kind.id == wanted[1]]
        return {"data": {"gpuTypes": [{"id": kind.id, "displayName": kind.name, "memoryInGb": kind.memory} for kind in kinds]}}
    if "myself" in query:
        return {"data": {"myself": _myself(fake, owner)}}
    if "podRentInterruptable" not in query and not bids:
        fake.violate(f"GraphQL has no such query: {query[:QUERY_CHARS_SHOWN]}")
    return _error("Cannot query this field")


def _with_bid(fake: "FakeRunPod", kind: Kind, count: int, cloud: str) -> Json:
    bid = round(kind.usd[cloud] * fake.terms.spot_share, 4) if cloud in kind.usd and count <= kind.max_count else None
    return {"id": kind.id, "lowestPrice": {"minimumBidPrice": bid, "stockStatus": "Low" if bid else None}}


def _rent(fake: "FakeRunPod", order: Json) -> Json:
    """Rent a pod for the bid, which must reach the lowest one. A field that the input type does not have, or has with another type, is
    refused, as GraphQL does."""
    wrong = sorted(name for name, value in order.items() if not isinstance(value, SPOT_FIELDS.get(name, ())))
    if wrong:
        fake.violate(f"GraphQL takes no {wrong[0]} of {order[wrong[0]]!r}")
        return _error(f'Field "{wrong[0]}" is not defined by type "PodRentInterruptableInput".')
    kind = next((kind for kind in fake.kinds if kind.id == order["gpuTypeId"]), None)
    lowest = _with_bid(fake, kind, order["gpuCount"], order["cloudType"])["lowestPrice"]["minimumBidPrice"] if kind is not None else None
    if lowest is None or order["bidPerGpu"] < lowest or fake.terms.spot_sold_out:
        return _error(fake.terms.no_capacity)
    as_in_v2 = {
        "name": order["name"],
        "image": order.get("imageName", ""),
        "gpu": {"id": order["gpuTypeId"], "count": order["gpuCount"]},
        "cloud": order["cloudType"],
        "disk": order["containerDiskInGb"],
        "ports": order["ports"].split(","),
        "env": {row["key"]: row["value"] for row in order.get("env", ())},
    }
    usd = order["bidPerGpu"] * order["gpuCount"] + order["containerDiskInGb"] * 0.10 / 730
    if fake.balance_usd < usd:
        return _error("Your balance is too low to rent this pod.")
    pod = fake.add(as_in_v2, round(usd + fake.terms.surcharge_usd, 6), "")
    return {"data": {"podRentInterruptable": {"id": pod.id, "name": fake.plan.renamed or pod.name, "costPerHr": pod.usd}}}


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

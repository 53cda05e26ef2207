"""The queries and mutations of GraphQL that RunPod's own Python client and this project's adapter send.

It is no GraphQL server: it recognises the few documents by their fields, and answers with more fields than
were asked for.
"""

import json
import re
from typing import TYPE_CHECKING, Any

from tests.fakes.http import Refusal
from tests.fakes.runpod import orders
from tests.fakes.runpod.catalogue import COMMUNITY, SECURE, Kind
from tests.fakes.runpod.pods import Status

if TYPE_CHECKING:
    from tests.fakes.runpod.pods import Pod
    from tests.fakes.runpod.server import FakeRunPod

PATH = "/graphql"
QUERY_CHARS_SHOWN = 200
Json = dict[str, Any]


def answer(fake: "FakeRunPod", query: str, owner: str, variables: Json | None = None) -> Json:
    """Return the answer to a document of the account `owner`; one that is not recognised is answered with an
    error, and with status 200 as RunPod does.
    """
    changed = re.search(r'(podTerminate|podStop)\(input: \{ podId: "([^"]*)"', query)
    one = re.search(r'\bpod\(input: \{podId: "([^"]*)"', query)
    if changed:
        return _changed(fake, changed[1], changed[2])
    if one:
        pod = _known(fake, one[1])
        return {"data": {"pod": None if pod is None else _shown(fake, pod)}}
    if "podRentInterruptable" in query and fake.terms.has_spot:
        return _rent(fake, (variables or {})["input"])
    if "podFindAndDeployOnDemand" in query:
        return _deploy(fake, orders.read(query))
    if "gpuTypes" in query:
        return _kinds(fake, query)
    if "myself" in query:
        return {"data": {"myself": _myself(fake, owner)}}
    if "podRentInterruptable" not in query:
        fake.violate(f"GraphQL has no such query: {query[:QUERY_CHARS_SHOWN]}")
    return _error("Cannot query this field")


def _changed(fake: "FakeRunPod", what: str, pod_id: str) -> Json:
    pod = _known(fake, pod_id)
    if pod is None:
        return _error(f"pod not found to {what.removeprefix('pod').lower()}")
    if what == "podTerminate":
        fake.terminate(pod)
        return {"data": {what: None}}
    fake.end(pod.id, Status.EXITED)
    return {"data": {what: _shown(fake, pod)}}


def _kinds(fake: "FakeRunPod", query: str) -> Json:
    """Return the kinds of GPUs, one of them or all, with bids where spot machines can be had."""
    bids = re.search(r"lowestPrice\(input: \{gpuCount: (\d+)(?:, secureCloud: (true|false))?\}\)", query)
    wanted = re.search(r'gpuTypes\(input: \{id: "([^"]*)"', query)
    if bids and bids[2] and not fake.terms.has_spot:
        return _error("Cannot query this field")
    cloud = SECURE if not bids or bids[2] != "false" else COMMUNITY
    kinds = [kind for kind in fake.kinds if not wanted or kind.id == wanted[1]]
    return {"data": {"gpuTypes": [_kind(fake, kind, int(bids[1]) if bids else 1, cloud) for kind in kinds]}}


def _kind(fake: "FakeRunPod", kind: Kind, count: int, cloud: str) -> Json:
    bid = _bid(fake, kind, count, cloud)
    return {
        "id": kind.id,
        "displayName": kind.name,
        "manufacturer": kind.manufacturer,
        "memoryInGb": kind.memory,
        "maxGpuCount": kind.max_count,
        "secureCloud": SECURE in kind.usd,
        "communityCloud": COMMUNITY in kind.usd,
        "securePrice": kind.usd.get(SECURE),
        "communityPrice": kind.usd.get(COMMUNITY),
        "secureSpotPrice": _bid(fake, kind, 1, SECURE),
        "communitySpotPrice": _bid(fake, kind, 1, COMMUNITY),
        "lowestPrice": {
            "minimumBidPrice": bid,
            "uninterruptablePrice": kind.usd.get(cloud),
            "stockStatus": "Low" if bid else None,
        },
    }


def _bid(fake: "FakeRunPod", kind: Kind, count: int, cloud: str) -> float | None:
    """Return the lowest bid for one GPU and hour; None if there is none."""
    is_offered = fake.terms.has_spot and cloud in kind.usd and count <= kind.max_count
    return round(kind.usd[cloud] * fake.terms.spot_share, 4) if is_offered else None


def _rent(fake: "FakeRunPod", order: Json) -> Json:
    """Rent a pod for the bid, which must reach the lowest one. A field that the input type does not have, or
    has with another type, is refused, as GraphQL does.
    """
    fault = orders.fault(order, "PodRentInterruptableInput")
    if fault:
        fake.violate(fault)
        return _error(fault)
    kind = next((kind for kind in fake.kinds if kind.id == order["gpuTypeId"]), None)
    lowest = _bid(fake, kind, order["gpuCount"], order["cloudType"]) if kind is not None else None
    if lowest is None or order["bidPerGpu"] < lowest or fake.terms.spot_sold_out:
        return _error(fake.terms.no_capacity)
    usd = order["bidPerGpu"] * order["gpuCount"] + order["containerDiskInGb"] * 0.10 / 730
    if fake.balance_usd < usd:
        return _error("Your balance is too low to rent this pod.")
    pod = fake.add(orders.in_v2(order, order["cloudType"]), round(usd + fake.terms.surcharge_usd, 6), "")
    return {
        "data": {
            "podRentInterruptable": {
                "id": pod.id,
                "name": fake.plan.renamed or pod.name,
                "costPerHr": pod.usd,
            }
        }
    }


def _deploy(fake: "FakeRunPod", order: Json) -> Json:
    """Rent a pod on demand, in the cheapest cloud if none is named."""
    fault = orders.fault(order, "PodFindAndDeployOnDemandInput")
    if fault:
        return _error(fault)
    usd = next((kind.usd for kind in fake.kinds if kind.id == order["gpuTypeId"]), {SECURE: 0.0})
    cloud = min(usd, key=lambda each: usd[each]) if order["cloudType"] == "ALL" else order["cloudType"]
    try:
        pod = fake.rent(orders.in_v2(order, cloud))
    except Refusal as refusal:
        return _error(json.loads(refusal.response.body)["detail"])
    return {
        "data": {
            "podFindAndDeployOnDemand": {
                **_shown(fake, pod),
                "machineId": "m1",
                "machine": {"podHostId": f"{pod.id}-1"},
            }
        }
    }


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

"""Answers to what is asked about pods."""

from tests.fakes.prime.orders import CreatePod
from tests.fakes.prime.queries import Asked, HistorySlice, Json, LogQuery, PodSlice, StatusQuery, read
from tests.fakes.prime.world import World


def list_pods(world: World, asked: Asked) -> Json:
    """`Terms.pods_a_page` and `Terms.cut_listings` make pages shorter than is asked for, and lists shorter than they say they are."""
    at_s, terms, pods, page = world.listed_s(), world.terms, list(world.listed()), read(asked, PodSlice)
    page = page.model_copy(update={"limit": min(page.limit, terms.pods_a_page)})
    known = page.of(pods, lambda pod: pod.json(at_s)) | {"status": "ok"}
    if terms.cut_listings <= 0:
        return known
    terms.cut_listings -= 1
    return known | page.of(pods[: len(pods) // 2], lambda pod: pod.json(at_s)) | {"total_count": len(pods)}


def create_pod(world: World, asked: Asked) -> Json:
    """Told as it is ordered, before anything has come of it."""
    pod = world.create_pod(CreatePod.model_validate_json(asked.body))
    return pod.json(pod.created_s - 1.0)


def get_pod(world: World, asked: Asked) -> Json:
    return world.pod(asked.found).json(world.clock.now_s())


def pod_statuses(world: World, asked: Asked) -> Json:
    """Of pods that are not known nothing is said."""
    pods = [world.pods[pod_id] for pod_id in read(asked, StatusQuery).pod_ids if pod_id in world.pods]
    return {"data": [pod.status_json(world.clock.now_s()) for pod in pods if world.is_known(pod)], "status": "ok"}


def delete_pod(world: World, asked: Asked) -> Json:
    return {"status": world.delete_pod(asked.found).status(world.clock.now_s())}


def pod_log(world: World, asked: Asked) -> Json:
    machine = world.pod(asked.found).machine
    lines = machine.log().splitlines() if machine else []
    return {"logs": lines[-read(asked, LogQuery).tail :]}


def pod_history(world: World, asked: Asked) -> Json:
    wanted = read(asked, HistorySlice)
    ended = sorted(world.ended(), key=lambda pod: pod.ended_s if wanted.sort_by == "terminatedAt" else pod.created_s)
    return wanted.of(ended[:: -1 if wanted.sort_order == "desc" else 1], lambda pod: pod.history_json()) | {"status": "ok"}

"""Answers to what is asked about pods."""

from tests.fakes.prime.orders import CreatePod
from tests.fakes.prime.queries import Asked, HistorySlice, Json, LogQuery, Slice, StatusQuery, read
from tests.fakes.prime.world import World


def list_pods(world: World, asked: Asked) -> Json:
    at_s = world.listed_s()
    return read(asked, Slice).of(world.listed(), lambda pod: pod.json(at_s)) | {"status": "ok"}


def create_pod(world: World, asked: Asked) -> Json:
    """Told as it is ordered, before anything has come of it."""
    pod = world.create_pod(CreatePod.model_validate_json(asked.body))
    return pod.json(pod.created_s - 1.0)


def get_pod(world: World, asked: Asked) -> Json:
    return world.pod(asked.found).json(world.clock.now_s())


def pod_statuses(world: World, asked: Asked) -> Json:
    """Of pods that are not known nothing is said."""
    now_s = world.clock.now_s()
    pods = [world.pods[pod_id] for pod_id in read(asked, StatusQuery).pod_ids if pod_id in world.pods]
    return {"data": [pod.status_json(now_s) for pod in pods if pod.is_known(now_s)], "status": "ok"}


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

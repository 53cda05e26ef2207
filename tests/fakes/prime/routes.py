"""The requests of Prime's API, with the permission and the effect of each."""

from dataclasses import dataclass

from tests.fakes.clock import iso_ms
from tests.fakes.http import Json, Request, Route
from tests.fakes.prime.bodies import ChangeKey, CreateDisk, CreateKey, CreatePod, RenameDisk
from tests.fakes.prime.queries import (
    DiskPage,
    GpuPage,
    HistorySlice,
    LogQuery,
    PodSlice,
    Query,
    Slice,
    StatusQuery,
    WalletSlice,
    read,
)
from tests.fakes.prime.rows import summary
from tests.fakes.prime.world import World

# ------------------------------------------------------------------------------------------------------------
# offers


def gpus(world: World, request: Request) -> Json:
    page = read(request, GpuPage)
    if world.terms.empty_listings > 0:
        world.terms.empty_listings -= 1
        return page.of([])
    disks = [world.disk(disk_id) for disk_id in page.disks]
    content = page.of(
        [row for row in world.rows if page.wants(row) and all(disk.fits(row) for disk in disks)]
    )
    if world.rows_next is not None:
        world.rows, world.rows_next = world.rows_next, None
    return content


def multi_node(world: World, request: Request) -> Json:
    page = read(request, GpuPage)
    return page.of([row for row in world.multi_node_rows if page.wants(row)])


def disk_offers(world: World, request: Request) -> Json:
    page = read(request, DiskPage)
    rows = [
        row
        for row in world.disk_rows
        if page.data_center_id in (None, row.dataCenter) and page.cloud_id in (None, row.cloudId)
    ]
    return page.of([row for row in rows if not page.regions or row.region in page.regions])


def gpu_summary(world: World, request: Request) -> Json:
    return summary(world.rows)


def multi_node_summary(world: World, request: Request) -> Json:
    return summary(world.multi_node_rows)


# ------------------------------------------------------------------------------------------------------------
# pods


def list_pods(world: World, request: Request) -> Json:
    """Return a page of pods. `Terms.pods_a_page` and `Terms.cut_listings` make pages shorter than requested,
    and lists shorter than their reported total.
    """
    at_s, terms, pods, page = world.listed_s(), world.terms, list(world.listed()), read(request, PodSlice)
    page = page.model_copy(update={"limit": min(page.limit, terms.pods_a_page)})
    known = page.of(pods, lambda pod: pod.json(at_s)) | {"status": "ok"}
    if terms.cut_listings <= 0:
        return known
    terms.cut_listings -= 1
    return known | page.of(pods[: len(pods) // 2], lambda pod: pod.json(at_s)) | {"total_count": len(pods)}


def create_pod(world: World, request: Request) -> Json:
    """Create a pod, and return it as ordered, before anything has happened."""
    pod = world.create_pod(CreatePod.model_validate_json(request.body))
    return pod.json(pod.created_s - 1.0)


def get_pod(world: World, request: Request) -> Json:
    return world.pod(request.params["pod_id"]).json(world.clock.now_s())


def pod_statuses(world: World, request: Request) -> Json:
    """Return the statuses of known pods; unknown ones are left out."""
    pods = [world.pods[pod_id] for pod_id in read(request, StatusQuery).pod_ids if pod_id in world.pods]
    return {
        "data": [pod.status_json(world.clock.now_s()) for pod in pods if world.is_known(pod)],
        "status": "ok",
    }


def delete_pod(world: World, request: Request) -> Json:
    return {"status": world.delete_pod(request.params["pod_id"]).status(world.clock.now_s())}


def pod_log(world: World, request: Request) -> Json:
    machine = world.pod(request.params["pod_id"]).machine
    lines = machine.log().splitlines() if machine else []
    return {"logs": lines[-read(request, LogQuery).tail :]}


def pod_history(world: World, request: Request) -> Json:
    wanted = read(request, HistorySlice)
    ended = sorted(
        world.ended(), key=lambda pod: pod.ended_s if wanted.sort_by == "terminatedAt" else pod.created_s
    )
    return wanted.of(ended[:: -1 if wanted.sort_order == "desc" else 1], lambda pod: pod.history_json()) | {
        "status": "ok"
    }


# ----------------------------------------------------------------------------------------------------------
# keys, disks, money and people


def list_keys(world: World, request: Request) -> Json:
    return read(request, Slice).of(world.ssh_keys.all(), lambda key: key.json())


def create_key(world: World, request: Request) -> Json:
    wanted = CreateKey.model_validate_json(request.body)
    return world.ssh_keys.add(wanted.name, wanted.publicKey, world.clock.now_s()).json()


def change_key(world: World, request: Request) -> Json:
    ChangeKey.model_validate_json(request.body)
    return world.ssh_keys.make_primary(request.params["key_id"]).json()


def delete_key(world: World, request: Request) -> Json:
    world.ssh_keys.remove(request.params["key_id"])
    return {"status": "deleted"}


def list_disks(world: World, request: Request) -> Json:
    now_s = world.clock.now_s()
    return read(request, Slice).of(list(world.disks.values()), lambda disk: disk.json(now_s)) | {
        "status": "ok"
    }


def create_disk(world: World, request: Request) -> Json:
    return world.create_disk(CreateDisk.model_validate_json(request.body)).json(world.clock.now_s())


def get_disk(world: World, request: Request) -> Json:
    return world.disk(request.params["disk_id"]).json(world.clock.now_s())


def rename_disk(world: World, request: Request) -> Json:
    disk = world.disk(request.params["disk_id"])
    disk.name = RenameDisk.model_validate_json(request.body).name
    return disk.json(world.clock.now_s())


def delete_disk(world: World, request: Request) -> Json:
    world.disk(request.params["disk_id"]).delete()
    del world.disks[request.params["disk_id"]]
    return {"status": "TERMINATED"}


def wallet(world: World, request: Request) -> Json:
    wanted = read(request, WalletSlice)
    of, now = world.wallet(wanted.teamId), iso_ms(world.clock.now_s())
    billed = [
        (pod.created_s, pod.billed_usd, "Instance", pod.pod_id)
        for pod in world.pods.values()
        if pod.wallet_id == of.wallet_id
    ]
    billed += [
        (disk.created_s, disk.billed_usd, "Disk", disk.disk_id)
        for disk in world.disks.values()
        if disk.wallet_id == of.wallet_id
    ]
    rows = [
        {
            "id": f"bill-{resource_id}",
            "created_at": iso_ms(made_s),
            "updated_at": now,
            "last_billed_at": now,
            "amount_usd": round(usd, 6),
            "currency": "USD",
            "resource_type": kind,
            "resource_id": resource_id,
        }
        for made_s, usd, kind, resource_id in billed
        if usd > 0
    ]
    known: dict[str, object] = {
        "wallet_id": of.wallet_id,
        "team_id": wanted.teamId,
        "balance_usd": round(of.balance_usd, 6),
    }
    return known | {
        "currency": "USD",
        "total_billings": len(rows),
        "recent_billings": rows[wanted.offset : wanted.offset + wanted.limit],
    }


def whoami(world: World, request: Request) -> Json:
    return world.api_keys[request.token].whoami()


def team_members(world: World, request: Request) -> Json:
    """Return the members of a team; every owner of a key is a member of every team."""
    world.wallet(request.params["team_id"])
    joined = {"role": "MEMBER", "joinedAt": iso_ms(world.clock.now_s())}
    people = dict.fromkeys(key.user_id for key in world.api_keys.values())
    return {
        "data": [
            {"userId": one, "userName": one, "userEmail": f"{one}@example.com", **joined} for one in people
        ]
    }


def teams(world: World, request: Request) -> Json:
    now_s = world.clock.now_s()
    return read(request, Slice).of(list(world.teams.values()), lambda team: team.json(now_s))


# ------------------------------------------------------------------------------------------------------------
# the table


@dataclass(frozen=True)
class PrimeRoute(Route):
    """A route. `permission`: the permission that the key needs; `query`: what its query may have. Its handler
    gets the world and the request.
    """

    permission: str
    query: type[Query] = Query

    @property
    def deed(self) -> str:
        return "read" if self.method == "GET" else "write"


ROUTES = (
    PrimeRoute("GET", "/availability/gpus", gpus, "availability", GpuPage),
    PrimeRoute("GET", "/availability/multi-node", multi_node, "availability", GpuPage),
    PrimeRoute("GET", "/availability/disks", disk_offers, "availability", DiskPage),
    PrimeRoute("GET", "/availability/gpu-summary", gpu_summary, "availability"),
    PrimeRoute("GET", "/availability/multi-node-summary", multi_node_summary, "availability"),
    PrimeRoute("GET", "/pods/", list_pods, "instances", PodSlice),
    PrimeRoute("POST", "/pods/", create_pod, "instances"),
    PrimeRoute("GET", "/pods/status", pod_statuses, "instances", StatusQuery),
    PrimeRoute("GET", "/pods/history", pod_history, "instances", HistorySlice),
    PrimeRoute("GET", "/pods/{pod_id}/log", pod_log, "instances", LogQuery),
    PrimeRoute("GET", "/pods/{pod_id}", get_pod, "instances"),
    PrimeRoute("DELETE", "/pods/{pod_id}", delete_pod, "instances"),
    PrimeRoute("GET", "/ssh_keys/", list_keys, "ssh_keys", Slice),
    PrimeRoute("POST", "/ssh_keys/", create_key, "ssh_keys"),
    PrimeRoute("PATCH", "/ssh_keys/{key_id}", change_key, "ssh_keys"),
    PrimeRoute("DELETE", "/ssh_keys/{key_id}", delete_key, "ssh_keys"),
    PrimeRoute("GET", "/disks/", list_disks, "disks", Slice),
    PrimeRoute("POST", "/disks/", create_disk, "disks"),
    PrimeRoute("GET", "/disks/{disk_id}", get_disk, "disks"),
    PrimeRoute("PATCH", "/disks/{disk_id}", rename_disk, "disks"),
    PrimeRoute("DELETE", "/disks/{disk_id}", delete_disk, "disks"),
    PrimeRoute("GET", "/billing/wallet", wallet, "billing", WalletSlice),
    PrimeRoute("GET", "/user/whoami", whoami, "user"),
    PrimeRoute("GET", "/teams/{team_id}/members", team_members, "user"),
    PrimeRoute("GET", "/user/teams", teams, "user", Slice),
)


def canonical(path: str) -> str | None:
    """Return the path as it should have been requested, with or without the final slash; None if there is no
    such path.
    """
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    return next(
        (each for each in (path, other) if any(route.match(each) is not None for route in ROUTES)), None
    )

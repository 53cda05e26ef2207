"""The fake's server, its state, and its routes."""

from dataclasses import dataclass
from pathlib import Path

from tests.fakes.answers import table_of
from tests.fakes.clock import Clock, iso
from tests.fakes.http import Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.fakes.machine_images import CONDA_OF_THE_TESTS, Image
from tests.fakes.openapi import DescribedFake, Description
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.ssh_wire import Cuts
from tests.fakes.runpod import graphql
from tests.fakes.runpod.catalogue import COMMUNITY, EXAMPLES, SECURE, Kind
from tests.fakes.runpod.pods import ACTIONS, Json, Pod, Status

API_KEY = "rpa_" + "F4K3" * 8
ACCOUNT_ID = "user_2fakefakefake"
DISK_USD_PER_GB_HOUR = 0.10 / 730
MINUTE_S = 60
SSH_HOST = "127.0.0.1"
DATA = Path(__file__).resolve().parents[2] / "data" / "runpod" / "openapi.json"
DESCRIPTION = Description(
    DATA, "RunPod", is_usual_error=lambda body: {"title", "status", "detail"} <= body.keys()
)


@dataclass
class Terms:
    """Behaviour that is not documented. `no_capacity`: the detail of a 400 for a machine that is taken;
    `surcharge_usd`: how much a pod costs more than the catalogue says; `per_minute`: the requests that are
    allowed in a minute.
    """

    no_capacity: str = (
        "There are no longer any instances available with the requested specifications. Please refresh and "
        "try again."
    )
    surcharge_usd: float = 0.0
    per_minute: int = 1_000_000
    spend_limit_usd: float = 80.0
    graphql_refusal: str = ""
    has_spot: bool = True
    spot_share: float = 0.5
    """The lowest bid as a share of the on-demand price."""
    spot_sold_out: bool = False


@dataclass
class Plan:
    """What becomes of pods that are created from now on."""

    boot_s: float = 0.0
    public_ip: bool = True
    renamed: str = ""
    image: Image = CONDA_OF_THE_TESTS


def problem(status: int, title: str, detail: str, *, headers: dict[str, str] | None = None) -> Response:
    """Return an error in RunPod's form."""
    answer = json_response({"title": title, "status": status, "detail": detail}, status, headers)
    return Response(status, answer.body, "application/problem+json", headers or {})


class FakeRunPod(DescribedFake):
    """The fake. `running`: its clock advances like the real one, not only by `advance`. `home`: where the
    disks of pods are, which then answer SSH; without it they have an address that nobody answers.
    """

    description = DESCRIPTION
    table = table_of("runpod")

    def __init__(self, *, running: bool = False, home: Path | None = None) -> None:
        super().__init__()
        self._clock, self._home, self._cuts = Clock(running=running), home, Cuts()
        self.kinds: tuple[Kind, ...] = EXAMPLES
        self.stock: dict[tuple[str, str, str], int] = {}
        """The pods that may run at once, by kind, cloud and data centre; any number if there is no entry."""
        self.terms, self.plan = Terms(), Plan()
        self.keys = {API_KEY: ACCOUNT_ID}
        self.balance_usd: float = 100.0
        self.volumes: dict[str, str] = {}
        """The data centres of the account's network volumes, by id."""
        self._pods: dict[str, Pod] = {}
        self._taken: list[float] = []

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            for pod in self._pods.values():
                self._switch_off(pod)

    # --------------------------------------------------------------------------------------------------------
    # what there is

    @property
    def api_key(self) -> str:
        return API_KEY

    @property
    def pods(self) -> list[Pod]:
        """Return all pods that were ever created."""
        with self.lock:
            return list(self._pods.values())

    @property
    def alive(self) -> list[Pod]:
        """Return the pods that cost money, or have to be terminated."""
        return [pod for pod in self.pods if pod.costs]

    def pod(self, pod_id: str) -> Pod:
        return self._pods[pod_id]

    def now_s(self) -> float:
        return self._clock.now_s()

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def advance(self, seconds: float) -> None:
        with self.lock:
            self._clock.advance(seconds)

    def end(self, pod_id: str, seen_as: Status | None) -> None:
        """End the pod: it is reported with this status from now on; None: it is unknown to the API."""
        with self.lock:
            pod = self._pods[pod_id]
            pod.end, pod.deleted = seen_as, seen_as is None
            self._switch_off(pod)

    def violate(self, why: str) -> None:
        """Take note of a request that is outside of what is known of GraphQL, which has no description."""
        if self.is_checked:
            self._violations.append(why)

    def revive(self, pod_id: str) -> None:
        """Let the pod be there again, as if it had never ended."""
        with self.lock:
            pod = self._pods[pod_id]
            pod.end, pod.deleted = None, False

    def _switch_off(self, pod: Pod) -> None:
        if pod.machine is not None:
            pod.machine.destroy()
            pod.machine = None

    # --------------------------------------------------------------------------------------------------------
    # handling requests

    def respond(self, request: Request) -> Response:
        if request.path != graphql.PATH:
            return super().respond(request)
        try:
            self._check_key(request)
        except Refusal:
            return json_response({"errors": [{"message": "Unauthorized"}]}, 401)
        if self.terms.graphql_refusal:
            return json_response({"errors": [{"message": self.terms.graphql_refusal}], "data": None})
        return json_response(
            graphql.answer(
                self, str(request.json["query"]), self.keys[request.token], request.json.get("variables")
            )
        )

    def handled(self, route: Route, request: Request) -> object:
        self._check_key(request)
        self._taken = [at_s for at_s in self._taken if at_s > self.now_s() - MINUTE_S]
        if len(self._taken) >= self.terms.per_minute:
            left_s = int(self._taken[0] + MINUTE_S - self.now_s()) + 1
            raise Refusal(
                problem(
                    429,
                    "Too Many Requests",
                    "rate limit exceeded for the minute window",
                    headers={"Retry-After": str(left_s)},
                )
            )
        self._taken.append(self.now_s())
        return route.handler(self, request)

    def finished(self, request: Request, response: Response) -> Response:
        left, limit = self.terms.per_minute - len(self._taken), self.terms.per_minute
        reset_s = int(self._taken[0] + MINUTE_S - self.now_s()) + 1 if self._taken else MINUTE_S
        limits = {
            "RateLimit": f'"minute";r={max(0, left)};t={reset_s}',
            "RateLimit-Policy": f'"minute";q={limit};w={MINUTE_S}',
        }
        return Response(response.status, response.body, response.content_type, {**limits, **response.headers})

    def _check_key(self, request: Request) -> None:
        if request.token not in self.keys:
            raise Refusal(
                problem(
                    401,
                    "Unauthorized",
                    "missing bearer token" if not request.token else "invalid bearer token",
                )
            )

    # --------------------------------------------------------------------------------------------------------
    # routes

    def list_gpus(self, request: Request) -> Json:
        query = request.query
        if "AVAILABILITY" in query.get("include", "") and "product" not in query:
            raise Refusal(problem(400, "Bad Request", "product is required with include=AVAILABILITY"))
        count, cloud = int(query.get("count", "1")), query.get("cloud", SECURE)
        return {"gpus": [self._row(kind, count, cloud) for kind in self.kinds]}

    def _row(self, kind: Kind, count: int, cloud: str) -> Json:
        offered = cloud in kind.usd and count <= kind.max_count
        places = [place for place in kind.places.get(cloud, ()) if offered and self._left(kind, cloud, place)]
        free = bool(places) if kind.places.get(cloud) else offered and bool(self._left(kind, cloud, ""))
        row: Json = {
            "id": kind.id,
            "name": kind.name,
            "pool": None,
            "manufacturer": kind.manufacturer,
            "memory": kind.memory,
            "secure": SECURE in kind.usd,
            "community": COMMUNITY in kind.usd,
            "price": {"secure": kind.usd.get(SECURE, 0.0), "community": kind.usd.get(COMMUNITY, 0.0)},
            "maxCount": {"secure": kind.max_count, "community": kind.max_count},
            "availability": "MEDIUM" if free else "NONE",
        }
        if places:
            row["dataCenters"] = [{"id": place, "name": place, "availability": "HIGH"} for place in places]
        return row

    def _left(self, kind: Kind, cloud: str, place: str) -> int:
        alive = [pod for pod in self._pods.values() if pod.costs and pod.place == place]
        taken = sum(
            (pod.order["gpu"]["id"], pod.order.get("cloud", SECURE)) == (kind.id, cloud) for pod in alive
        )
        return max(0, self.stock.get((kind.id, cloud, place), taken + 1) - taken)

    def create_pod(self, request: Request) -> Response:
        pod = self.rent(request.json)
        return Response(
            201, json_response(self.description.filled("POST", "/v2/pods", 201, self.shown(pod))).body
        )

    def rent(self, order: Json) -> Pod:
        """Start a pod on demand, if there is one, and the money for it."""
        kind = next((kind for kind in self.kinds if kind.id == order["gpu"]["id"]), None)
        if kind is None:
            raise Refusal(problem(400, "Bad Request", "unknown gpu id"))
        count, cloud = order["gpu"].get("count", 1), order.get("cloud", SECURE)
        usd = kind.usd.get(cloud, 0.0) * count + order.get("disk", 10) * DISK_USD_PER_GB_HOUR
        if self.balance_usd < usd:
            raise Refusal(problem(402, "Payment Required", "insufficient balance to deploy this pod"))
        if sum(pod.usd for pod in self._pods.values() if pod.costs) + usd > self.terms.spend_limit_usd:
            raise Refusal(problem(400, "Bad Request", "this would exceed the spend limit of your account"))
        self._check_mounts(order, cloud)
        wanted = order.get("dataCenterIds") or kind.places.get(cloud) or ("",)
        place = next(
            (
                place
                for place in wanted
                if count <= kind.max_count and cloud in kind.usd and self._left(kind, cloud, place)
            ),
            None,
        )
        if place is None:
            raise Refusal(problem(400, "Bad Request", self.terms.no_capacity))
        return self.add(order, round(usd + self.terms.surcharge_usd, 6), place)

    def _check_mounts(self, order: Json, cloud: str) -> None:
        """Refuse a volume that the account does not have, in another cloud than the secure one, and away from
        where it is.
        """
        for mount in order.get("mounts", {}).get("network", ()):
            place = self.volumes.get(mount["volumeId"])
            if place is None:
                raise Refusal(problem(400, "Bad Request", "network volume not found"))
            if cloud != SECURE:
                raise Refusal(
                    problem(400, "Bad Request", "network volumes are not available in community cloud")
                )
            if order.get("dataCenterIds") != [place]:
                raise Refusal(
                    problem(400, "Bad Request", "network volume must be in the same data center as the pod")
                )

    def get_volume(self, request: Request) -> Json:
        volume = request.params["id"]
        if volume not in self.volumes:
            raise Refusal(problem(404, "Not Found", "network volume not found"))
        return {
            "id": volume,
            "name": "sets",
            "size": 100,
            "dataCenter": self.volumes[volume],
            "type": "STANDARD",
        }

    def add(self, order: Json, usd: float, place: str) -> Pod:
        """Start a pod that was ordered, in the form of version 2."""
        pod_id = f"{len(self._pods) + 1:04d}m2n4k6p8"
        pod = Pod(pod_id, order, usd, place, self.now_s(), self.plan.boot_s, public_ip=self.plan.public_ip)
        self._pods[pod.id] = pod
        return pod

    def list_pods(self, request: Request) -> Json:
        return {
            "pods": [self.shown(pod) for pod in self._pods.values() if not pod.deleted and not pod.hidden]
        }

    def get_pod(self, request: Request) -> Json:
        return self.shown(self._known(request))

    def delete_pod(self, request: Request) -> None:
        self.terminate(self._known(request))

    def terminate(self, pod: Pod) -> None:
        pod.deleted = True
        self._switch_off(pod)

    def _known(self, request: Request) -> Pod:
        pod = self._pods.get(request.params["id"])
        if pod is None or pod.deleted:
            raise Refusal(problem(404, "Not Found", "pod not found"))
        return pod

    def shown(self, pod: Pod) -> Json:
        """Return the pod as the API describes it."""
        now_s, order = self.now_s(), pod.order
        status = pod.status(now_s)
        runs = status is Status.RUNNING
        port = self._ssh_port(pod) if runs and pod.public_ip and "22/tcp" in order.get("ports", ()) else None
        user = pod.machine.user if pod.machine is not None else "root"
        direct = (
            {"host": SSH_HOST, "port": port, "username": user, "command": f"ssh {user}@{SSH_HOST} -p {port}"}
            if port
            else None
        )
        ports = [{"private": 22, "public": port, "type": "tcp", "ip": SSH_HOST}] if port else []
        return {
            "id": pod.id,
            "name": self.plan.renamed or pod.name,
            "status": status.value,
            "actions": ACTIONS.get(status.value, ["terminate"]),
            "image": order.get("image", "runpod/of-the-template"),
            "args": order.get("args", ""),
            "disk": order.get("disk", 10),
            "mounts": order.get("mounts", {}),
            "ports": order.get("ports", []),
            "env": order.get("env", {}),
            "registry": None,
            "gpu": {"id": order["gpu"]["id"], "count": order["gpu"].get("count", 1)},
            "cloud": order.get("cloud", SECURE),
            "dataCenterId": pod.place or None,
            "cudaVersion": "12.8",
            "ssh": {"proxy": None, "direct": direct},
            "template": None,
            "cost": 0.0 if status in (Status.EXITED, Status.TERMINATED) else pod.usd,
            "locked": False,
            "globalNetworking": {"enabled": False},
            "runtime": {"uptime": int(now_s - pod.created_s), "ports": ports} if runs else None,
            "createdAt": iso(pod.created_s),
            "startedAt": iso(pod.created_s) if runs else None,
        }

    def _ssh_port(self, pod: Pod) -> int:
        if self._home is None:
            return 22022
        if pod.machine is None:
            pod.machine = Machine(
                self._home / pod.id,
                pod.id,
                pod.order.get("env", {}).get("PUBLIC_KEY", ""),
                self._cuts,
                self.plan.image,
            )
        return pod.machine.port

    routes = (
        Route("GET", "/v2/catalog/gpus", list_gpus),
        Route("GET", "/v2/network-volumes/{id}", get_volume),
        Route("GET", "/v2/pods", list_pods),
        Route("POST", "/v2/pods", create_pod),
        Route("GET", "/v2/pods/{id}", get_pod),
        Route("DELETE", "/v2/pods/{id}", delete_pod),
    )

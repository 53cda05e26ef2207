"""The fake's server, its state, and its routes."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.answers import table_of
from tests.fakes.clock import Clock
from tests.fakes.http import Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.fakes.lambda_cloud.instances import ACTIONS, Instance, Json, Status
from tests.fakes.machine_images import UBUNTU_22_04, Image
from tests.fakes.openapi import DescribedFake, Description
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.ssh_wire import Cuts

SSH_PORT = 22
API_KEY = "secret_tests_" + "f4" * 16 + "." + "K3y" * 10
DATA = Path(__file__).resolve().parents[2] / "data" / "lambda" / "openapi.json"
DESCRIPTION = Description(
    DATA,
    "Lambda Cloud",
    is_usual_error=lambda body: (
        isinstance(body.get("error"), dict) and {"code", "message"} <= body["error"].keys()
    ),
)
NO_CAPACITY = "instance-operations/launch/insufficient-capacity"
NOT_THERE = "global/object-does-not-exist"


@dataclass(frozen=True)
class Kind:
    """A type of machine. `gpu`: its description, such as `H100 (80 GB SXM5)`."""

    name: str
    gpu: str
    cents: int
    gpus: int
    storage_gib: int
    regions: tuple[str, ...]


EXAMPLES = (
    Kind("gpu_1x_h100_pcie", "H100 (80 GB PCIe)", 249, 1, 1024, ("us-west-3",)),
    Kind("gpu_8x_h100_sxm5", "H100 (80 GB SXM5)", 2392, 8, 24780, ("us-east-1", "us-south-1")),
    Kind("gpu_1x_a100_sxm4", "A100 (40 GB SXM4)", 129, 1, 512, ("us-west-2", "asia-south-1")),
    Kind("gpu_1x_a10", "A10 (24 GB PCIe)", 75, 1, 1400, ("us-west-1",)),
    Kind("gpu_1x_gh200", "GH200 (96 GB)", 149, 1, 4096, ("us-east-3",)),
    Kind("gpu_4x_x9000", "X9000 (111 GB SXM9)", 400, 4, 1024, ("us-west-1",)),
    Kind("cpu_4x_general", "N/A", 10, 0, 128, ("us-west-1",)),
    Kind("gpu_1x_b200_sxm6", "B200 (180 GB SXM6)", 499, 1, 2816, ()),
)


@dataclass
class Plan:
    """What becomes of instances that are launched from now on. `end_s`: how long they are terminating."""

    boot_s: float = 0.0
    end_s: float = 0.0
    has_tags: bool = True
    image: Image = UBUNTU_22_04


@dataclass
class Limits:
    """Seconds between two requests and two launches; 0: any number is allowed. `quota`: instances at once."""

    request_s: float = 0.0
    launch_s: float = 0.0
    quota: int = 1000


def error(status: int, code: str, message: str = "No.", *, headers: dict[str, str] | None = None) -> Response:
    """Return an error in Lambda Cloud's form."""
    return json_response(
        {"error": {"code": code, "message": message, "suggestion": "Try something else."}}, status, headers
    )


class FakeLambdaCloud(DescribedFake):
    """The fake. `running`: its clock advances like the real one, not only by `advance`. `home`: where the
    disks of instances are, which then answer SSH, at port 22 of an address of loopback; without it they have
    an address that nobody answers.
    """

    description = DESCRIPTION
    table = table_of("lambda")

    def __init__(self, *, running: bool = False, home: Path | None = None) -> None:
        super().__init__()
        self._clock, self._home, self._cuts = Clock(running=running), home, Cuts()
        self.kinds: tuple[Kind, ...] = EXAMPLES
        self.stock: dict[tuple[str, str], int] = {}
        """The instances that may run at once, by type and region; any number if there is no entry."""
        self.plan, self.limits = Plan(), Limits()
        self.accounts = {API_KEY: "one"}
        """The account of each key."""
        self.ssh_keys: dict[str, list[Json]] = {}
        """The SSH keys of each account."""
        self._instances: dict[str, Instance] = {}
        self._last_s: dict[str, float] = {}

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            for instance in self._instances.values():
                self._switch_off(instance)

    # --------------------------------------------------------------------------------------------------------
    # what there is

    @property
    def instances(self) -> list[Instance]:
        """Return all instances that were ever launched."""
        with self.lock:
            return list(self._instances.values())

    @property
    def alive(self) -> list[Instance]:
        """Return the instances that cost money."""
        return [instance for instance in self.instances if instance.costs]

    def instance(self, instance_id: str) -> Instance:
        return self._instances[instance_id]

    def now_s(self) -> float:
        return self._clock.now_s()

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def advance(self, seconds: float) -> None:
        with self.lock:
            self._clock.advance(seconds)

    def end(self, instance_id: str, seen_as: Status | None) -> None:
        """End the instance: it is reported with this status from now on; None: it is unknown to the API."""
        with self.lock:
            instance = self._instances[instance_id]
            instance.end, instance.deleted = seen_as, seen_as is None
            self._switch_off(instance)

    def revive(self, instance_id: str) -> None:
        """Let the instance be there again, as if it had never ended."""
        with self.lock:
            instance = self._instances[instance_id]
            instance.end, instance.deleted = None, False

    def _start(self, instance: Instance) -> None:
        """Start the machine of an instance that runs, if it has not been started. No other machine of these
        tests has its address.
        """
        if instance.machine is None and self._home is not None:
            names = instance.order["ssh_key_names"]
            keys = "\n".join(
                key["public_key"] for kept in self.ssh_keys.values() for key in kept if key["name"] in names
            )
            instance.ip = (
                f"127.{secrets.randbelow(200) + 50}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
            )
            name = f"lambda-{instance.id[-6:]}-{os.getpid()}"
            instance.machine = Machine(
                self._home / name, name, keys, self._cuts, self.plan.image, (instance.ip, SSH_PORT)
            )

    def _switch_off(self, instance: Instance) -> None:
        if instance.machine is not None:
            instance.machine.destroy()
            instance.machine = None

    # --------------------------------------------------------------------------------------------------------
    # handling requests

    def handled(self, route: Route, request: Request) -> object:
        if request.token not in self.accounts:
            raise Refusal(error(401, "global/invalid-api-key", "API key was invalid, expired, or deleted."))
        self._limit("request", self.limits.request_s)
        if route.template.endswith("/launch"):
            self._limit("launch", self.limits.launch_s)
        return {"data": route.handler(self, request)}

    def _limit(self, what: str, least_s: float) -> None:
        now_s = self.now_s()
        if now_s - self._last_s.get(what, -1e9) < least_s:
            raise Refusal(error(429, "global/rate-limited", "Too many requests."))
        self._last_s[what] = now_s

    # --------------------------------------------------------------------------------------------------------
    # routes

    def list_types(self, request: Request) -> Json:
        return {
            kind.name: {
                "instance_type": self._type(kind),
                "regions_with_capacity_available": [
                    {"name": region, "description": f"Somewhere in {region}"}
                    for region in kind.regions
                    if self._left(kind.name, region)
                ],
            }
            for kind in self.kinds
        }

    def _type(self, kind: Kind) -> Json:
        return {
            "name": kind.name,
            "description": f"{kind.gpus}x {kind.gpu}",
            "gpu_description": kind.gpu,
            "price_cents_per_hour": kind.cents,
            "specs": {"vcpus": 26, "memory_gib": 200, "storage_gib": kind.storage_gib, "gpus": kind.gpus},
        }

    def _left(self, kind: str, region: str) -> int:
        taken = sum(
            instance.place == (kind, region) for instance in self._instances.values() if instance.costs
        )
        return max(0, self.stock.get((kind, region), taken + 1) - taken)

    def launch(self, request: Request) -> Json:
        order = request.json
        kind = next((kind for kind in self.kinds if kind.name == order["instance_type_name"]), None)
        known = {key["name"] for key in self.ssh_keys.get(self.accounts[request.token], [])}
        if kind is None or not set(order["ssh_key_names"]) <= known:
            raise Refusal(error(404, NOT_THERE, "Instance type or SSH key was not found."))
        if len(order["ssh_key_names"]) != 1:
            raise Refusal(error(400, "global/invalid-parameters", "Exactly one SSH key must be specified."))
        if sum(instance.costs for instance in self._instances.values()) >= self.limits.quota:
            raise Refusal(error(400, "global/quota-exceeded", "Quota exceeded."))
        if order["region_name"] not in kind.regions or not self._left(kind.name, order["region_name"]):
            raise Refusal(error(400, NO_CAPACITY, "Not enough capacity to fulfill launch request."))
        instance_id = f"{len(self._instances) + 1:032x}"
        self._instances[instance_id] = Instance(
            instance_id, order, self.now_s(), self.plan.boot_s, self.plan.end_s
        )
        return {"instance_ids": [instance_id]}

    def list_instances(self, request: Request) -> list[Json]:
        return [
            self.shown(each)
            for each in self._instances.values()
            if not each.hidden and each.status(self.now_s()) is not None
        ]

    def get_instance(self, request: Request) -> Json:
        return self.shown(self._known(request.params["id"]))

    def terminate(self, request: Request) -> Json:
        told = [self._known(instance_id) for instance_id in request.json["instance_ids"]]
        for instance in told:
            instance.terminated_s = self.now_s() if instance.terminated_s is None else instance.terminated_s
            self._switch_off(instance)
        return {"terminated_instances": [self.shown(instance) for instance in told]}

    def _known(self, instance_id: str) -> Instance:
        instance = self._instances.get(instance_id)
        if instance is None or instance.status(self.now_s()) is None:
            raise Refusal(error(404, NOT_THERE, "Specified instance does not exist."))
        return instance

    def list_ssh_keys(self, request: Request) -> list[Json]:
        return self.ssh_keys.get(self.accounts[request.token], [])

    def add_ssh_key(self, request: Request) -> Json:
        kept = self.ssh_keys.setdefault(self.accounts[request.token], [])
        number = sum(map(len, self.ssh_keys.values())) + 1
        kept.append({"id": f"{number:032x}", **request.json})
        return kept[-1]

    def shown(self, instance: Instance) -> Json:
        """Return the instance as the API describes it."""
        kind = next(kind for kind in self.kinds if kind.name == instance.place[0])
        status = instance.status(self.now_s()) or Status.TERMINATED
        shown: Json = {
            "id": instance.id,
            "name": instance.name,
            "status": status.value,
            "ssh_key_names": instance.order["ssh_key_names"],
            "file_system_names": [],
            "region": {"name": instance.place[1], "description": "Somewhere"},
            "instance_type": self._type(kind),
            "actions": {name: {"available": status is Status.ACTIVE} for name in ACTIONS},
        }
        if status is Status.ACTIVE:
            self._start(instance)
            shown["ip"] = instance.ip
        if self.plan.has_tags:
            shown["tags"] = instance.order.get("tags", [])
        return shown

    routes = (
        Route("GET", "/api/v1/instance-types", list_types),
        Route("GET", "/api/v1/instances", list_instances),
        Route("GET", "/api/v1/instances/{id}", get_instance),
        Route("POST", "/api/v1/instance-operations/launch", launch),
        Route("POST", "/api/v1/instance-operations/terminate", terminate),
        Route("GET", "/api/v1/ssh-keys", list_ssh_keys),
        Route("POST", "/api/v1/ssh-keys", add_ssh_key),
    )

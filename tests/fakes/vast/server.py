"""The fake's server, its state, and its routes."""

import base64
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.fakes.answers import table_of
from tests.fakes.clock import Clock
from tests.fakes.http import Refusal, Request, Response, json_response
from tests.fakes.http.connections import LOOPBACK
from tests.fakes.http.routes import Route
from tests.fakes.machine_images import CONDA_OF_THE_TESTS, Image
from tests.fakes.openapi import DescribedFake, Description
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.ssh_wire import Cuts
from tests.fakes.vast.asks import EXAMPLES, Ask, Host, asks, fits
from tests.fakes.vast.instances import Instance, Json, Status

API_KEY = "5eed" * 16
ACCOUNT_ID = 4711
DATA = Path(__file__).resolve().parents[2] / "data" / "vast" / "openapi.json"
PAGE_MAX = 25
DAY_S = 86_400
PUBLIC_IP = "192.0.2.45"
PLAIN = "text/plain"
NOT_FILTERS = frozenset({"limit", "type", "order", "allocated_storage"})
DEFAULT_FILTERS = {"verified": {"eq": True}, "rentable": {"eq": True}, "rented": {"eq": False}}

CORRECTIONS = {
    "type": "Vast's client reads an instance of null where there is none, but the description knows only "
    "objects",
    "ports": "the list has a mapping of ports, as others read it of a single instance too; the description "
    "of that has a list of numbers",
}
"""Where the description of an instance is contradicted, by the keyword that is corrected, and by whom."""


class VastDescription(Description):
    """The published description, with `CORRECTIONS`."""

    @cached_property
    def complete(self) -> Json:
        found: Json = super().complete
        listed = found["paths"]["/api/v1/instances"]["get"]["responses"]["200"]["content"][
            "application/json"
        ]["schema"]
        instance = found["components"]["schemas"]["Instance"]
        instance["type"] = ["object", "null"]
        instance["properties"]["ports"] = listed["properties"]["instances"]["items"]["properties"]["ports"]
        return found


DESCRIPTION = VastDescription(
    DATA, "Vast.ai", is_usual_error=lambda body: {"msg", "error", "message"} & body.keys()
)


@dataclass
class Terms:
    """Behaviour that is not documented or differs between hosts. `leaves_stopped`: a bid that is too low
    leaves a stopped instance, also if the order asks to cancel it. `surcharge_usd`: how much an instance
    costs more than offered. `search_rows`: the rows that may be found in a day. `least_s`: the seconds
    between two requests of one kind, by method and template.
    """

    leaves_stopped: bool = False
    surcharge_usd: float = 0.0
    search_rows: int = 1_000_000
    least_s: dict[tuple[str, str], float] = field(default_factory=dict)


@dataclass
class Plan:
    """What becomes of instances that are created from now on. `has_ports`: they have a public SSH port;
    `ssh_host`: they are reached by Vast's proxy at this address, or not if it is empty. `image`: what is
    started, whatever the order says.
    """

    boot_s: float = 0.0
    has_ports: bool = True
    ssh_host: str = "ssh5.vast.ai"
    image: Image = CONDA_OF_THE_TESTS


def refused(status: int, code: str, message: str, **more: object) -> Response:
    """Return an error in Vast's usual form."""
    return json_response({"success": False, "error": code, "msg": message, **more}, status)


def _token(last_id: int) -> str:
    return base64.b64encode(json.dumps({"values": {"id": last_id}}).encode()).decode()


def _read_token(token: str) -> int:
    try:
        return int(json.loads(base64.b64decode(token))["values"]["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(
            json_response({"error": "invalid_token", "msg": "Invalid pagination token"}, 400)
        ) from error


class FakeVast(DescribedFake):
    """The fake. `running`: its clock advances like the real one, not only by `advance`. `home`: where the
    disks of instances are, which then answer SSH; without it they have an address that nobody answers.
    """

    description = DESCRIPTION
    table = table_of("vast")

    def __init__(self, *, running: bool = False, home: Path | None = None) -> None:
        super().__init__()
        self._clock, self._home, self._cuts = Clock(running=running), home, Cuts()
        self.hosts: tuple[Host, ...] = EXAMPLES
        self.stock: dict[int, int] = {}
        """The instances that may run at once, by the id of the ask; any number if there is no entry."""
        self.terms, self.plan = Terms(), Plan()
        self.keys = {API_KEY: ACCOUNT_ID}
        self.balance_usd: float = 100.0
        self._instances: dict[int, Instance] = {}
        self._rows: dict[int, int] = {}
        self._last_s: dict[tuple[str, str, str], float] = {}

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            for instance in self._instances.values():
                self._switch_off(instance)

    # --------------------------------------------------------------------------------------------------------
    # what there is

    @property
    def api_key(self) -> str:
        return API_KEY

    @property
    def instances(self) -> list[Instance]:
        """Return all instances that were ever created."""
        with self.lock:
            return list(self._instances.values())

    @property
    def alive(self) -> list[Instance]:
        """Return the instances that cost money."""
        return [each for each in self.instances if each.costs]

    def instance(self, instance_id: str | int) -> Instance:
        return self._instances[int(instance_id)]

    def now_s(self) -> float:
        return self._clock.now_s()

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def advance(self, seconds: float) -> None:
        with self.lock:
            self._clock.advance(seconds)

    def end(self, instance_id: str | int, seen_as: Status | None) -> None:
        """End the container: it is reported with this status from now on; None: the instance is unknown to
        the API.
        """
        with self.lock:
            instance = self.instance(instance_id)
            instance.end, instance.deleted = seen_as, seen_as is None
            self._switch_off(instance)

    def outbid(self, instance_id: str | int, *, stops_in_s: float = 0.0) -> None:
        """Pause the instance, because somebody bids more: its container stops a moment later."""
        with self.lock:
            instance = self.instance(instance_id)
            instance.is_paused, instance.stopping_s = True, self.now_s() + stops_in_s

    def resume(self, instance_id: str | int) -> None:
        """Let a paused instance run again, as Vast does by itself when nobody bids more any longer."""
        with self.lock:
            instance = self.instance(instance_id)
            instance.is_paused = instance.is_paused and instance.deleted

    def revive(self, instance_id: str | int) -> None:
        """Let the instance be there again, as if it had never ended."""
        with self.lock:
            instance = self.instance(instance_id)
            instance.end, instance.deleted, instance.is_paused = None, False, False

    def _machine(self, instance: Instance) -> Machine | None:
        """Return the machine of an instance that runs, which is started when it is first asked for. Its
        entrypoint is sshd: the image's own is skipped, as with the runtype that is ordered.
        """
        if instance.machine is None and self._home is not None:
            keys = "\n".join(instance.ssh_keys)
            instance.machine = Machine(
                self._home / instance.id,
                f"vast-{instance.id}-{os.getpid()}",
                keys,
                self._cuts,
                self.plan.image,
            )
        return instance.machine

    def _switch_off(self, instance: Instance) -> None:
        if instance.machine is not None:
            instance.machine.destroy()
            instance.machine = None

    # --------------------------------------------------------------------------------------------------------
    # handling requests

    def handle(self, request: Request) -> Response | None:
        request.path = request.path.rstrip("/")
        return super().handle(request)

    def dispatch(self, route: Route, request: Request) -> Response:
        """Refuse what comes too soon, in plain text as Vast does, which the description does not know."""
        least_s, now_s = self.terms.least_s.get((request.method, route.template), 0.0), self.now_s()
        asked = (request.token, request.method, route.template)
        if now_s - self._last_s.get(asked, -1e12) < least_s:
            return Response(429, f"API requests too frequent: endpoint threshold={least_s}".encode(), PLAIN)
        self._last_s[asked] = now_s
        return super().dispatch(route, request)

    def handled(self, route: Route, request: Request) -> object:
        if request.token not in self.keys:
            raise Refusal(
                refused(404 if route.template == "/api/v0/bundles" else 401, "auth_error", "Invalid user key")
            )
        return route.handler(self, request)

    def _account(self, request: Request) -> int:
        return self.keys[request.token]

    # --------------------------------------------------------------------------------------------------------
    # offers

    def search(self, request: Request) -> object:
        query = request.json
        kind, disk_gb = query.get("type", "ondemand"), float(query.get("allocated_storage", 8))
        filters = DEFAULT_FILTERS | {name: value for name, value in query.items() if name not in NOT_FILTERS}
        found = [ask.row(kind, disk_gb) for ask in asks(self.hosts) if self._left(ask)]
        found = [row for row in found if fits(row, filters)]
        for name, direction in reversed(query.get("order", [])):
            found.sort(key=lambda row: row[name], reverse=direction == "desc")
        found = found[: query.get("limit", len(found))]
        today = int(self.now_s() // DAY_S)
        self._rows[today] = self._rows.get(today, 0) + len(found)
        if self._rows[today] > self.terms.search_rows:
            left_s = int((today + 1) * DAY_S - self.now_s())
            answer = json_response(
                {"success": False, "error": "search_quota_exceeded", "msg": "Daily search quota exceeded."},
                429,
            )
            raise Refusal(replace(answer, headers={"Retry-After": str(left_s)}))
        return {"offers": found}

    def _left(self, ask: Ask) -> int:
        taken = sum(each.ask.id == ask.id and each.takes_gpus for each in self._instances.values())
        return max(0, self.stock.get(ask.id, taken + 1) - taken)

    # --------------------------------------------------------------------------------------------------------
    # instances

    def create(self, request: Request) -> object:
        order, ask_id = request.json, request.params["id"]
        ask = next((ask for ask in asks(self.hosts) if ask.id == ask_id), None)
        if ask is None or not self._left(ask):
            raise Refusal(
                refused(
                    404,
                    "invalid_args",
                    f"error 404/3603: no_such_ask Instance type by id {ask_id} is not available.",
                    ask_id=ask_id,
                )
            )
        if self.balance_usd <= 0:
            # The description names fewer codes than Vast sends.
            raise Refusal(
                json_response(
                    {"success": False, "msg": "Your account lacks credit; see the billing page."}, 400
                )
            )
        if order.get("disk", 8) > ask.host.disk_gb:
            raise Refusal(refused(400, "invalid_args", "error 400/3500: disk is too large", ask_id=ask_id))
        bid_usd, least_usd = order.get("price"), round(ask.host.bid_usd * ask.count, 6)
        if bid_usd is not None and bid_usd < least_usd:
            if order.get("cancel_unavail") and not self.terms.leaves_stopped:
                raise Refusal(
                    refused(
                        410,
                        "no_such_ask",
                        f"error 410/3907: no_such_ask Instance type {ask_id} is no longer available.",
                    )
                )
            stopped = self.rented(ask, order, self._account(request))
            stopped.is_paused = True
            raise Refusal(
                refused(
                    400,
                    "invalid_price",
                    f"Bid price is below {least_usd}.",
                    new_contract=stopped.number,
                    ask_id=ask_id,
                )
            )
        return {"success": True, "new_contract": self.rented(ask, order, self._account(request)).number}

    def rented(self, ask: Ask, order: Json, account: int) -> Instance:
        number = 20_000_001 + len(self._instances)
        instance = Instance(number, ask, order, self.now_s(), self.plan.boot_s, account)
        instance.surcharge_usd = self.terms.surcharge_usd
        instance.has_ports, instance.ssh_host = self.plan.has_ports, self.plan.ssh_host
        self._instances[number] = instance
        return instance

    def list_instances(self, request: Request) -> Json:
        query = request.query
        filters = json.loads(query.get("select_filters", "{}"))
        after = _read_token(query["after_token"]) if "after_token" in query else 0
        limit = min(PAGE_MAX, int(query.get("limit", PAGE_MAX)))
        mine = [each for each in self._of(request) if not each.hidden]
        found = [
            row for row in map(self.shown, sorted(mine, key=lambda each: each.number)) if fits(row, filters)
        ]
        page = [row for row in found if row["id"] > after][:limit]
        more = bool(page) and page[-1]["id"] < found[-1]["id"]
        return {
            "success": True,
            "instances_found": len(page),
            "total_instances": len(found),
            "instances": page,
            "next_token": _token(page[-1]["id"]) if more else None,
        }

    def _of(self, request: Request) -> Iterable[Instance]:
        return [
            each
            for each in self._instances.values()
            if each.account == self._account(request) and not each.deleted
        ]

    def _mine(self, request: Request) -> Instance | None:
        return next((each for each in self._of(request) if each.number == request.params["id"]), None)

    def _known(self, request: Request) -> Instance:
        instance = self._mine(request)
        if instance is None:
            raise Refusal(refused(404, "no_such_instance", f"Instance {request.params['id']} not found."))
        return instance

    def get_instance(self, request: Request) -> Json:
        instance = self._mine(request)
        return {"instances": self.shown(instance) if instance is not None else None}

    def destroy(self, request: Request) -> Json:
        instance = self._known(request)
        instance.deleted, instance.ended_s = True, self.now_s()
        self._switch_off(instance)
        return {"success": True}

    def manage(self, request: Request) -> Json:
        instance = self._known(request)
        if "label" in request.json:
            instance.order["label"] = request.json["label"]
        if "state" in request.json:
            instance.is_paused = request.json["state"] == "stopped"
        return {"success": True}

    def change_bid(self, request: Request) -> Json:
        self._known(request).order["price"] = request.json["price"]
        return {"success": True}

    def list_ssh_keys(self, request: Request) -> Json:
        keys = [
            {"id": number, "public_key": key} for number, key in enumerate(self._known(request).ssh_keys, 1)
        ]
        return {"success": True, "ssh_keys": json.dumps(keys)}

    def attach_ssh_key(self, request: Request) -> Json:
        instance = self._known(request)
        if request.json["ssh_key"] in instance.ssh_keys:
            raise Refusal(refused(400, "invalid_args", "SSH key is attached already"))
        instance.ssh_keys.append(request.json["ssh_key"])
        if instance.machine is not None:
            instance.machine.allow(request.json["ssh_key"])
        return {"success": True, "msg": "SSH key attached successfully"}

    def shown(self, instance: Instance) -> Json:
        """Return the instance as the API describes it."""
        now_s = self.now_s()
        status, wanted = instance.status(now_s), "stopped" if instance.is_paused else "running"
        shown: Json = {
            "id": instance.number,
            "label": instance.name or None,
            "actual_status": status.value if status is not None else None,
            "intended_status": wanted,
            "cur_state": wanted,
            "next_state": wanted,
            "status_msg": "success, running",
            "machine_id": instance.ask.host.id,
            "host_id": instance.ask.host.id + 7,
            "gpu_name": instance.ask.host.gpu,
            "num_gpus": instance.ask.count,
            "is_bid": instance.bid_usd is not None,
            "image_uuid": instance.order["image"],
            "extra_env": [],
            "start_date": instance.created_s,
            "end_date": instance.created_s + instance.ask.host.days * DAY_S,
            "duration": instance.ask.host.days * DAY_S,
            "dph_base": instance.ask.usd(instance.bid_usd),
            "dph_total": instance.usd,
            "min_bid": max(instance.ask.host.bid_usd * instance.ask.count, 1.2 * (instance.bid_usd or 0.0)),
            "ssh_host": instance.ssh_host,
            "ssh_port": 10_000 + instance.number % 10_000,
            "ports": None,
            "geolocation": instance.ask.host.place,
        }
        if status is Status.RUNNING and instance.has_ports:
            machine = self._machine(instance)
            port = machine.port if machine is not None else 40_000 + instance.number % 10_000
            shown["public_ipaddr"] = LOOPBACK if machine is not None else PUBLIC_IP
            shown["ports"] = {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(port)}]}
        return shown

    # --------------------------------------------------------------------------------------------------------
    # the account

    def show_user(self, request: Request) -> Json:
        return {"id": self._account(request), "email": "me@example.com", "balance": self.balance_usd}

    def show_charges(self, request: Request) -> Json:
        """Return what the instances of the account have cost in the time that the query names."""
        day = json.loads(request.query["select_filters"])["day"]
        now_s, limit = self.now_s(), min(500, int(request.query.get("limit", 100)))
        mine = [each for each in self._instances.values() if each.account == self._account(request)]
        ends = {each.id: each.ended_s if each.ended_s is not None else now_s for each in mine}
        rows = [
            self._charged(each, ends[each.id])
            for each in mine
            if each.created_s <= day["lte"] and ends[each.id] >= day["gte"]
        ]
        first = _read_token(request.query["after_token"]) if "after_token" in request.query else 0
        page, more = rows[first : first + limit], len(rows) > first + limit
        return {
            "success": True,
            "count": len(page),
            "total": len(rows),
            "results": page,
            "next_token": _token(first + limit) if more else None,
        }

    def _charged(self, instance: Instance, end_s: float) -> Json:
        usd = round(instance.usd * (end_s - instance.created_s) / 3600, 3)
        metadata: dict[str, Any] = {"label": instance.name} if instance.name else {}
        return {
            "start": int(instance.created_s),
            "end": int(end_s),
            "type": "instance",
            "source": f"instance-{instance.id}",
            "amount": usd,
            "metadata": metadata,
            "items": [],
        }

    routes = (
        Route("POST", "/api/v0/bundles", search),
        Route("PUT", "/api/v0/asks/{id:int}", create),
        Route("GET", "/api/v1/instances", list_instances),
        Route("PUT", "/api/v0/instances/bid_price/{id:int}", change_bid),
        Route("GET", "/api/v0/instances/{id:int}/ssh", list_ssh_keys),
        Route("POST", "/api/v0/instances/{id:int}/ssh", attach_ssh_key),
        Route("GET", "/api/v0/instances/{id:int}", get_instance),
        Route("PUT", "/api/v0/instances/{id:int}", manage),
        Route("DELETE", "/api/v0/instances/{id:int}", destroy),
        Route("GET", "/api/v0/users/current", show_user),
        Route("GET", "/api/v0/charges", show_charges),
    )

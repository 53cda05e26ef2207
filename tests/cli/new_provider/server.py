"""The provider's own server, on loopback. A machine is an entry until its agent starts; then it is a folder
with real processes.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.providers.local.pods import DEFAULT_OFFERS, LocalPods
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from tests.fakes.clock import iso
from tests.fakes.http import Json, Refusal, Request, Route, json_response
from tests.fakes.openapi import DescribedFake, Description

API_KEY = "let-me-in"
AGENT = (sys.executable, "-m", "tests.cli.new_provider")
CLOVER = {
    "id": "clover",
    "gpu": "H100_80GB",
    "gpu_gb": 80,
    "usd": 0.40,
    "spot": True,
    "disk_gib": 200,
    "machine": "clover-7",
}
THISTLE = {"id": "thistle", "gpu": "H100_80GB", "gpu_gb": 80, "usd": 0.90, "spot": False, "disk_gib": 200}


@dataclass
class Rented:
    id: str
    name: str
    kind: Json
    since_s: float
    boot_s: float
    processes: Pod | None = None


class Meadow(DescribedFake):
    description = Description(
        Path(__file__).with_name("openapi.json"), "the meadow", lambda body: body.keys() == {"error"}
    )

    def __init__(self, folder: Path, agent: Sequence[str] = AGENT) -> None:
        super().__init__()
        self.host = LocalPods(folder, agent_command=agent)
        self.machines: dict[str, Rented] = {}
        self.stock: dict[str, int] = {}
        self.made, self.boot_s, self.balance_usd = 0, 0.0, 42.0

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            for pod in self.host.list():
                self.host.terminate(pod.pod_id)

    @property
    def alive(self) -> list[Rented]:
        return list(self.machines.values())

    def end(self, machine_id: str) -> None:
        """Take the machine away, with all its processes."""
        with self.lock:
            processes = self.machines.pop(machine_id).processes
            self.host.terminate(processes.pod_id if processes is not None else "")

    def handled(self, route: Route, request: Request) -> object:
        if request.token != API_KEY:
            raise Refusal(json_response({"error": "key"}, 401))
        return route.handler(self, request)

    def _free(self, kind: Json) -> int:
        taken = sum(machine.kind is kind for machine in self.alive)
        return self.stock.get(kind["id"], taken + 1) - taken

    def rent(self, request: Request) -> Json:
        kind = next(
            (kind for kind in (CLOVER, THISTLE) if kind["id"] == request.json["kind"] and self._free(kind)),
            None,
        )
        if kind is None or self.balance_usd <= 0:
            raise Refusal(
                json_response(
                    {"error": "sold out" if kind is None else "no money"}, 409 if kind is None else 402
                )
            )
        self.made += 1
        made = self.machines[f"m-{self.made}"] = Rented(
            f"m-{self.made}", request.json["name"], kind, time.time(), self.boot_s
        )
        return self.shown(made)

    def _known(self, request: Request) -> Rented:
        if request.params["id"] not in self.machines:
            raise Refusal(json_response({"error": "unknown"}, 404))
        return self.machines[request.params["id"]]

    def delete(self, request: Request) -> Json:
        machine = self._known(request)
        self.end(machine.id)
        return self.shown(machine)

    def start_agent(self, request: Request) -> Json:
        machine = self._known(request)
        machine.processes = machine.processes or self.host.create(
            machine.name, DEFAULT_OFFERS[0], HardwareSpec()
        )
        self.host.put_agent(machine.processes, Ticket.model_validate(request.json))
        return self.shown(machine)

    def shown(self, machine: Rented) -> Json:
        state = "grown" if time.time() >= machine.since_s + machine.boot_s else "sown"
        return {
            "id": machine.id,
            "name": machine.name,
            "state": state,
            "since": iso(machine.since_s),
            "usd": machine.kind["usd"],
        }

    routes = (
        Route(
            "GET",
            "/v1/kinds",
            lambda self, _: {"kinds": [{**kind, "free": self._free(kind)} for kind in (CLOVER, THISTLE)]},
        ),
        Route("GET", "/v1/account", lambda self, _: {"id": "shepherd", "usd": self.balance_usd}),
        Route(
            "GET",
            "/v1/machines",
            lambda self, _: {"machines": [self.shown(machine) for machine in self.alive]},
        ),
        Route("POST", "/v1/machines", rent),
        Route("GET", "/v1/machines/{id}", lambda self, request: self.shown(self._known(request))),
        Route("DELETE", "/v1/machines/{id}", delete),
        Route("PUT", "/v1/machines/{id}", start_agent),
    )

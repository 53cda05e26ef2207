"""The fake's server for tests: what a test can read and change in Prime's state."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import ValidationError

from tests.fakes.answers import has_answer, table_of
from tests.fakes.clock import Clock
from tests.fakes.http import Fault, HttpFake, Request, Response, json_response
from tests.fakes.prime.accounts import API_KEY, Team, Wallet
from tests.fakes.prime.bodies import CreatePod
from tests.fakes.prime.pods import End, Plan, Pod
from tests.fakes.prime.refusals import Refused, detail, invalid
from tests.fakes.prime.routes import ROUTES, canonical
from tests.fakes.prime.rows import GpuRow
from tests.fakes.prime.ssh_wire import Cut
from tests.fakes.prime.terms import Terms
from tests.fakes.prime.world import World

TICK_S = 0.02


class FakePrime(HttpFake):
    """The fake. `home` holds the disks of its pods. `running`: its clock advances like the real one, not only
    by `advance`. `machines`: active pods are processes that answer SSH, which needs sshd (`needs_sshd`).
    """

    prefix = "/api/v1"
    is_checked = True
    """Whether `violations` are recorded; a test that damages what a client repeats sets it to False."""
    routes = ROUTES

    def __init__(self, home: Path, *, running: bool = False, machines: bool = True) -> None:
        super().__init__()
        self._clock = Clock(running=running)
        self._world = World(home, self._clock, with_machines=machines)
        self._violations: list[str] = []
        self._stopping = threading.Event()
        self._ticker = (
            threading.Thread(target=self._tick, name="prime-clock", daemon=True) if running else None
        )

    def __enter__(self) -> Self:
        if self._ticker is not None:
            self._ticker.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._ticker is not None:
            self._ticker.join()
        try:
            super().__exit__()
        finally:
            with self.lock, ExitStack() as ends:
                for pod in self._world.pods.values():
                    if pod.machine is not None:
                        ends.callback(pod.machine.destroy)

    @property
    def api_key(self) -> str:
        return API_KEY

    # --------------------------------------------------------------------------------------------------------
    # what there is

    @property
    def world(self) -> World:
        """Return the up-to-date state; change it only while no request is in progress."""
        with self.lock:
            self._world.settle()
            return self._world

    @property
    def violations(self) -> list[str]:
        """Return the requests that Prime's description does not allow: an unknown or redirected path, or an
        invalid body or query.
        """
        with self.lock:
            return list(self._violations)

    @property
    def rows(self) -> list[GpuRow]:
        return self._world.rows

    @rows.setter
    def rows(self, rows: Sequence[GpuRow]) -> None:
        with self.lock:
            self._world.rows = list(rows)

    def change_after_listing(self, rows: Sequence[GpuRow]) -> None:
        """Let the next listing return the present rows; after it these rows are available instead."""
        with self.lock:
            self._world.rows_next = list(rows)

    @property
    def plan(self) -> Plan:
        """Return the plan of pods that are created from now on."""
        return self._world.plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        with self.lock:
            self._world.plan = plan

    @property
    def terms(self) -> Terms:
        return self._world.terms

    @property
    def balance_usd(self) -> float:
        """Return the balance of the personal wallet."""
        return self.world.wallet(None).balance_usd

    @balance_usd.setter
    def balance_usd(self, usd: float) -> None:
        self.world.wallet(None).balance_usd = usd

    def add_team(self, team: Team, *, balance_usd: float = 100.0) -> None:
        with self.lock:
            self._world.teams[team.team_id] = team
            self._world.wallets[team.team_id] = Wallet(f"wallet-{team.team_id}", balance_usd)

    def add_ssh_key(self, public_key: str, name: str = "a key") -> str:
        """Add a key and return its id."""
        with self.lock:
            return self._world.ssh_keys.add(name, public_key, self._clock.now_s()).key_id

    def pod(self, pod_id: str) -> Pod:
        """Return a pod, also one that the API no longer knows."""
        return self.world.pods[pod_id]

    @property
    def alive(self) -> list[Pod]:
        """Return the pods that cost money or will."""
        return [pod for pod in self.world.pods.values() if pod.end is None]

    def home_of(self, pod_id: str) -> Path | None:
        """Return the folder that is the pod's disk, while it is up."""
        machine = self.pod(pod_id).machine
        return None if machine is None else machine.disk

    def now_s(self) -> float:
        return self._clock.now_s()

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def advance(self, seconds: float) -> None:
        with self.lock:
            self._clock.advance(seconds)
            self._world.settle()

    def preempt(self, pod_id: str, seen_as: End = End.TERMINATED) -> None:
        """Preempt the pod; when this returns its processes are dead and its folder is deleted."""
        with self.lock:
            self._world.end_pod(self.pod(pod_id), seen_as, "preempted")

    def order_again(self, request: Request) -> None:
        """Carry the order of a request out once more."""
        with self.lock:
            self._world.create_pod(CreatePod.model_validate_json(request.body))

    def revive(self, pod_id: str) -> None:
        """Let the pod be there again, as if it had never ended."""
        with self.lock:
            self._world.revive(self.pod(pod_id))

    def cut_ssh(
        self, *, after_bytes: int, times: int = 1, then: Callable[[int], object] = lambda port: None
    ) -> None:
        """Reset the next `times` connections, to whatever pod, after this many bytes, in both directions
        together. Before that `then` is called with the port from which the client has connected.
        """
        self._world.cuts.add(Cut(after_bytes, then), times)

    @property
    def ssh_cuts(self) -> int:
        """Return how many connections were cut."""
        return self._world.cuts.made

    # --------------------------------------------------------------------------------------------------------
    # handling requests

    def fault_for(self, request: Request) -> Fault | None:
        """Return the fault of a request. A request to the wrong path is redirected, whatever fault the right
        one has.
        """
        return None if self._redirect(request) else super().fault_for(request)

    def respond(self, request: Request) -> Response:
        self._world.settle()
        response = self._redirect(request) or super().respond(request)
        if not has_answer(table_of("prime"), request, response, prefix=self.prefix):
            self._violate(
                request,
                f"the answer {response.status} is in no table, and so nobody says where it is known from",
            )
        return response

    def dispatch(self, route: Any, request: Request) -> object:
        key, terms = self._world.api_keys.get(request.token), self._world.terms
        if key is None:
            raise Refused(terms.bad_key_status, "Could not validate credentials")
        if not key.may(route.permission, route.deed):
            raise Refused(
                terms.no_scope_status, f"API key lacks the permission {route.permission}:{route.deed}"
            )
        unknown = request.query_lists.keys() - route.query.model_fields.keys()
        if unknown:
            self._violate(request, f"the query has {sorted(unknown)}")
        try:
            return route.handler(self._world, request)
        except ValidationError as error:
            self._violate(request, str(error))
            return json_response(invalid(error, terms.invalid_form), 422)

    def no_route(self, request: Request) -> Response:
        self._violate(request, "there is no such method")
        return detail(405, "Method Not Allowed")

    def _violate(self, request: Request, why: str) -> None:
        if self.is_checked:
            self._violations.append(f"{request.method} {request.path}: {why}")

    def _redirect(self, request: Request) -> Response | None:
        """Return a redirect to the canonical path, or a refusal if there is none; None if the path is
        right.
        """
        at = urlsplit(request.target)
        path = canonical(request.path) if at.path.startswith(self.prefix) else None
        if path == request.path:
            return None
        self._violate(request, "there is no such path")
        if path is None:
            return detail(404, "Not Found")
        location = f"http://{request.headers.get('host', '')}{self.prefix}{path}" + (
            f"?{at.query}" if at.query else ""
        )
        return Response(307, headers={"Location": location})

    def _tick(self) -> None:
        while not self._stopping.wait(TICK_S):
            with self.lock:
                self._world.settle()

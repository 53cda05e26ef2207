"""The fake as a test holds it: what a test may ask of Prime's world, and do to it."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from tests.fakes.prime.accounts import API_KEY, Team, Wallet
from tests.fakes.prime.answering import Request, Target, answer, elsewhere
from tests.fakes.prime.clock import Clock
from tests.fakes.prime.faults import Answer, Fault, Hang, Rule, Rules, met
from tests.fakes.prime.http_front import HttpFront
from tests.fakes.prime.ordering import Terms
from tests.fakes.prime.pods import End, Plan, Pod
from tests.fakes.prime.rows import GpuRow
from tests.fakes.prime.ssh_wire import Cut
from tests.fakes.prime.world import World

TICK_S = 0.02
HANG_S_MAX = 120.0


class FakePrime:
    """Use as a context manager; `home` takes the disks of its pods. `running`: its clock goes by itself, not only by `advance`.
    `machines`: active pods are processes that answer SSH, which takes sshd (`needs_sshd`)."""

    def __init__(self, home: Path, *, running: bool = False, machines: bool = True) -> None:
        self._clock = Clock(running=running)
        self._running = running
        self._world = World(home, self._clock, with_machines=machines)
        self._lock = threading.RLock()
        self._rules = Rules()
        self._requests: list[Request] = []
        self._heard = threading.Condition(self._lock)
        self._released, self._stopping = threading.Event(), threading.Event()
        self._server = HttpFront(self.reply)
        self._threads = [threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="prime", daemon=True)]
        if running:
            self._threads.append(threading.Thread(target=self._tick, name="prime-clock", daemon=True))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()
        with self._lock, ExitStack() as ends:
            for pod in self._world.pods.values():
                if pod.machine is not None:
                    ends.callback(pod.machine.destroy)
        assert not self._server.broken, f"the fake itself failed: {self._server.broken}"

    # ---------------------------------------------------------------------------------------------------------- how to ask it

    @property
    def url(self) -> str:
        """Without /api/v1."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def api_key(self) -> str:
        return API_KEY

    # ------------------------------------------------------------------------------------------------------- what it was asked

    @property
    def requests(self) -> list[Request]:
        """All there were, in the order in which they came, redirects among them."""
        with self._lock:
            return [replace(request) for request in self._requests]

    def asked(self, method: str, path: str) -> list[Request]:
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def await_requests(self, method: str, path: str, count: int = 1, *, limit_s: float = HANG_S_MAX) -> None:
        """Until so many have come; they need not have been answered."""
        with self._heard:
            if not self._heard.wait_for(lambda: len(self.asked(method, path)) >= count, limit_s):
                raise AssertionError(f"{method} {path} was not asked {count} times within {limit_s:.0f} s")

    # ----------------------------------------------------------------------------------------------------------- what there is

    @property
    def world(self) -> World:
        """All of it, settled; to be changed only while nothing is asked."""
        with self._lock:
            self._world.settle()
            return self._world

    @property
    def rows(self) -> list[GpuRow]:
        return self._world.rows

    @rows.setter
    def rows(self, rows: Sequence[GpuRow]) -> None:
        with self._lock:
            self._world.rows = list(rows)

    def change_after_listing(self, rows: Sequence[GpuRow]) -> None:
        """The next listing tells of the rows as they are; from then on these are what can be had."""
        with self._lock:
            self._world.rows_next = list(rows)

    @property
    def plan(self) -> Plan:
        """What becomes of pods that are created from now on."""
        return self._world.plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        with self._lock:
            self._world.plan = plan

    @property
    def terms(self) -> Terms:
        return self._world.terms

    @property
    def balance_usd(self) -> float:
        """Of the personal wallet."""
        return self.world.wallet(None).balance_usd

    @balance_usd.setter
    def balance_usd(self, usd: float) -> None:
        self.world.wallet(None).balance_usd = usd

    def add_team(self, team: Team, *, balance_usd: float = 100.0) -> None:
        with self._lock:
            self._world.teams[team.team_id] = team
            self._world.wallets[team.team_id] = Wallet(f"wallet-{team.team_id}", balance_usd)

    def add_ssh_key(self, public_key: str, name: str = "a key") -> str:
        """Returns its id."""
        with self._lock:
            return self._world.ssh_keys.add(name, public_key, self._clock.now_s()).key_id

    def pod(self, pod_id: str) -> Pod:
        """Also one that the API no longer knows."""
        return self.world.pods[pod_id]

    @property
    def alive(self) -> list[Pod]:
        """Those that cost money or will."""
        return [pod for pod in self.world.pods.values() if pod.end is None]

    def home_of(self, pod_id: str) -> Path | None:
        """The folder that is the pod's disk, while it is up."""
        machine = self.pod(pod_id).machine
        return None if machine is None else machine.disk

    # ------------------------------------------------------------------------------------------------------------ what happens

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._clock.advance(seconds)
            self._world.settle()

    def preempt(self, pod_id: str, seen_as: End = End.TERMINATED) -> None:
        """Its processes are dead and its folder is gone when this returns."""
        with self._lock:
            self._world.end_pod(self.pod(pod_id), seen_as, "preempted")

    def fail(self, fault: Fault, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1) -> None:
        """From now on the fault for `times` of the requests that match, from the `first` on; `path` is searched in the path."""
        with self._lock:
            self._rules.add(Rule(fault, method, path, first, times))

    def heal(self) -> None:
        """No faults any more; what hangs is let go."""
        with self._lock:
            self._rules.clear()
            self._released.set()
            self._released = threading.Event()

    def cut_ssh(self, *, after_bytes: int, times: int = 1, then: Callable[[int], object] = lambda port: None) -> None:
        """So many connections from now on, to whatever pod, are reset after so many bytes, both ways together. Before that `then` is called
        with the port from which the client has connected."""
        self._world.cuts.add(Cut(after_bytes, then), times)

    @property
    def ssh_cuts(self) -> int:
        """How many were made."""
        return self._world.cuts.made

    # -------------------------------------------------------------------------------------------------------------- answering

    def reply(self, target: Target, host: str) -> Answer | None:
        """None: the connection is to be reset."""
        request = target.request()
        with self._heard:
            self._requests.append(request)
            self._heard.notify_all()
            moved = elsewhere(target.target, host)
            fault = None if moved else self._rules.meet(request.method, request.path)
            told = moved or met(fault, lambda: self._done(request))
            released = self._released
            request.status = told.status if told else 0
        if isinstance(fault, Hang):
            released.wait(HANG_S_MAX)
        return told

    def _done(self, request: Request) -> Answer:
        self._world.settle()
        return answer(self._world, request)

    def _tick(self) -> None:
        while not self._stopping.wait(TICK_S):
            with self._lock:
                self._world.settle()

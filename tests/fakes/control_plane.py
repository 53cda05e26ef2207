"""A control plane for agents under test: real HTTP, real signatures, scripted answers.

It behaves like the real webhook as far as an agent can notice: a wrong signature or clock is 401 with the
server's time, an attempt that is not the current one is 409, a sequence number that does not rise is
`repeated`, and so is a commit of an older step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from prime_train.runs.wire import (
    CLOCK_SKEW_S_MAX,
    PROOF_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Bootstrap,
    Commit,
    Heartbeat,
    Order,
    Outcome,
    PodKeys,
    Refusal,
    Reply,
    Ticket,
    attempt_key,
    attempt_path,
    prove,
    sign,
)
from tests.fakes.http import HttpFake, Request, Response
from tests.waiting import HANG_S

MASTER = b"a master key for tests"


@dataclass
class FakeControlPlane(HttpFake):
    """The fake. `heard` holds heartbeats, commits and exits in order; `clock` is the server's."""

    bootstrap: Bootstrap
    clock: Callable[[], int]
    heartbeat_s: int = 1
    received: list[Heartbeat | Commit] = field(default_factory=list)
    order: Order = Order.NONE
    reason: str = ""
    fenced: bool = False
    lent: list[PodKeys] = field(default_factory=list)
    """The keys returned to requests for keys, one after the other, the last one repeatedly; empty: keys do
    not expire here.
    """

    def __post_init__(self) -> None:
        super().__init__()
        self._seq = 0
        self._committed = 0

    @property
    def key(self) -> str:
        return attempt_key(MASTER, self.bootstrap.run, self.bootstrap.attempt, self.bootstrap.identity)

    @property
    def ticket(self) -> Ticket:
        job = self.bootstrap
        return Ticket(run=job.run, attempt=job.attempt, identity=job.identity, url=self.url, key=self.key)

    @property
    def heartbeats(self) -> list[Heartbeat]:
        """Return the accepted heartbeats, including the exit."""
        with self.lock:
            return [message for message in self.received if isinstance(message, Heartbeat)]

    @property
    def commits(self) -> list[Commit]:
        with self.lock:
            return [message for message in self.received if isinstance(message, Commit)]

    @property
    def exits(self) -> list[Heartbeat]:
        return [heartbeat for heartbeat in self.heartbeats if heartbeat.exit is not None]

    @property
    def refused(self) -> list[tuple[str, int]]:
        """Return verb and status of each refused request; status 0 for a request that was cut off."""
        return [
            (request.path.rpartition("/")[2], request.status)
            for request in self.requests
            if request.status != 200
        ]

    def await_heartbeat(self, wanted: Callable[[Heartbeat], object]) -> Heartbeat:
        """Return the first accepted heartbeat, past or future, that fulfils the condition."""
        self._await(lambda: any(wanted(heartbeat) for heartbeat in self.heartbeats))
        return next(heartbeat for heartbeat in self.heartbeats if wanted(heartbeat))

    def await_commit(self, step: int) -> None:
        self._await(lambda: any(commit.step >= step for commit in self.commits))

    def await_refusals(self, count: int) -> None:
        """Wait until this many requests were refused or cut off."""
        self._await(lambda: len(self.refused) >= count)

    def _await(self, is_so: Callable[[], object]) -> None:
        with self.changed:
            if not self.changed.wait_for(is_so, HANG_S):
                raise AssertionError(
                    f"not heard within {HANG_S:.0f} s; heard: {self.received[-5:]}, refused: "
                    f"{self.refused[-5:]}"
                )

    # --------------------------------------------------------------------------------------------------------
    # handling requests

    def respond(self, request: Request) -> Response:
        verb = request.path.rpartition("/")[2]
        status, content = self._decided(request.method, request.path, verb, request.headers, request.body)
        data = content.model_dump_json().encode()
        fence = (
            {PROOF_HEADER: prove(self.key, request.headers[SIGNATURE_HEADER], status, data)}
            if status == 409
            else {}
        )
        return Response(status, data, headers=fence)

    def _decided(
        self, method: str, path: str, verb: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, BaseModel]:
        sent_s = int(headers.get(TIMESTAMP_HEADER, "0"))
        signed = sign(self.key, sent_s, method, path, body) == headers.get(SIGNATURE_HEADER)
        if not signed or abs(sent_s - self.clock()) > CLOCK_SKEW_S_MAX:
            return 401, Refusal(
                error="wrong signature" if not signed else "the clock is off", now_s=self.clock()
            )
        if self.fenced or path != attempt_path(
            self.bootstrap.run, self.bootstrap.attempt, self.bootstrap.identity, verb
        ):
            return 409, Reply(
                outcome=Outcome.FENCED, reason="another attempt has taken over", now_s=self.clock()
            )
        match method, verb:
            case "GET", "bootstrap":
                return 200, self.bootstrap
            case "POST", "heartbeat" | "exit":
                return 200, self._heartbeat(Heartbeat.model_validate_json(body))
            case "POST", "commit":
                return 200, self._commit(Commit.model_validate_json(body))
            case "POST", "keys" if self.lent:
                return 200, self.lent.pop(0) if len(self.lent) > 1 else self.lent[0]
            case _:
                return 404, Refusal(error=f"no such path: {method} {path}")

    def _heartbeat(self, heartbeat: Heartbeat) -> Reply:
        assert heartbeat.identity == self.bootstrap.identity
        if heartbeat.seq <= self._seq:
            return self._reply(Outcome.REPEATED)
        self._seq = heartbeat.seq
        self.received.append(heartbeat)
        return self._reply(Outcome.OK)

    def _commit(self, commit: Commit) -> Reply:
        assert commit.identity == self.bootstrap.identity
        self.received.append(commit)
        newer = commit.step > self._committed
        self._committed = max(self._committed, commit.step)
        return self._reply(Outcome.OK if newer else Outcome.REPEATED)

    def _reply(self, outcome: Outcome) -> Reply:
        return Reply(
            outcome=outcome,
            order=self.order,
            reason=self.reason,
            heartbeat_s=self.heartbeat_s,
            committed_step=self._committed,
            now_s=self.clock(),
        )

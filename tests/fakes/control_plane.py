"""A control plane for agents under test: real HTTP, real signatures, answers by script.

It keeps the promises of the real webhook that an agent can notice: a wrong signature or clock is 401 with the server's time, an attempt
that is not the current one is 409, a number that does not rise is `repeated`, a commit of an older step too.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import BaseModel

from prime_train.core.wire import (
    CLOCK_SKEW_S_MAX,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Bootstrap,
    Commit,
    Heartbeat,
    Order,
    PodKeys,
    Refusal,
    Reply,
    Ticket,
    Verdict,
    attempt_key,
    attempt_path,
    sign,
)
from tests.fakes.served import Served

MASTER = b"a master key for tests"
WAIT_S_MAX = 60.0


@dataclass
class FakeControlPlane(Served):
    """Use as a context manager. `heard` holds heartbeats, commits and exits in order; `clock` is the server's."""

    bootstrap: Bootstrap
    clock: Callable[[], int]
    heartbeat_s: int = 1
    heard: list[Heartbeat | Commit] = field(default_factory=list)
    refused: list[tuple[str, int]] = field(default_factory=list)
    order: Order = Order.NONE
    reason: str = ""
    fenced: bool = False
    lent: list[PodKeys] = field(default_factory=list)
    """What is given to whoever asks for keys, one after the other, the last one over and over; none: they do not end here."""
    down: bool = False
    """Requests are cut off without an answer."""

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._seq = 0
        self._committed = 0
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        self.serve_by(server)

    @property
    def key(self) -> str:
        return attempt_key(MASTER, self.bootstrap.run, self.bootstrap.attempt, self.bootstrap.identity)

    @property
    def ticket(self) -> Ticket:
        job = self.bootstrap
        return Ticket(run=job.run, attempt=job.attempt, identity=job.identity, url=self.url, key=self.key)

    @property
    def heartbeats(self) -> list[Heartbeat]:
        """Accepted heartbeats, the exit among them."""
        with self._changed:
            return [said for said in self.heard if isinstance(said, Heartbeat)]

    @property
    def commits(self) -> list[Commit]:
        with self._changed:
            return [said for said in self.heard if isinstance(said, Commit)]

    @property
    def exits(self) -> list[Heartbeat]:
        return [heartbeat for heartbeat in self.heartbeats if heartbeat.exit is not None]

    def await_heartbeat(self, wanted: Callable[[Heartbeat], object], *, limit_s: float = WAIT_S_MAX) -> Heartbeat:
        """The first accepted heartbeat, old or new, that is as wanted."""
        self._await(lambda: any(wanted(heartbeat) for heartbeat in self.heartbeats), limit_s)
        return next(heartbeat for heartbeat in self.heartbeats if wanted(heartbeat))

    def await_commit(self, step: int, *, limit_s: float = WAIT_S_MAX) -> None:
        self._await(lambda: any(commit.step >= step for commit in self.commits), limit_s)

    def await_refusals(self, count: int, *, limit_s: float = WAIT_S_MAX) -> None:
        """Until so many requests were refused or cut off."""
        self._await(lambda: len(self.refused) >= count, limit_s)

    def _await(self, true: Callable[[], object], limit_s: float) -> None:
        with self._changed:
            if not self._changed.wait_for(true, limit_s):
                raise AssertionError(f"not heard within {limit_s:.0f} s; heard: {self.heard[-5:]}, refused: {self.refused[-5:]}")

    # ----------------------------------------------------------------------------------------------------------- answering

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, BaseModel] | None:
        """Status and body, or None to cut the connection."""
        verb = path.rsplit("/", 1)[-1]
        with self._changed:
            answer = None if self.down else self._decided(method, path, verb, headers, body)
            if answer is None or answer[0] != 200:
                self.refused.append((verb, 0 if answer is None else answer[0]))
            self._changed.notify_all()
            return answer

    def _decided(self, method: str, path: str, verb: str, headers: dict[str, str], body: bytes) -> tuple[int, BaseModel]:
        told_s = int(headers.get(TIMESTAMP_HEADER, "0"))
        signed = sign(self.key, told_s, method, path, body) == headers.get(SIGNATURE_HEADER)
        if not signed or abs(told_s - self.clock()) > CLOCK_SKEW_S_MAX:
            return 401, Refusal(error="wrong signature" if not signed else "the clock is off", now_s=self.clock())
        if self.fenced or path != attempt_path(self.bootstrap.run, self.bootstrap.attempt, self.bootstrap.identity, verb):
            return 409, Reply(verdict=Verdict.FENCED, reason="another attempt has taken over", now_s=self.clock())
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
            return self._reply(Verdict.REPEATED)
        self._seq = heartbeat.seq
        self.heard.append(heartbeat)
        return self._reply(Verdict.OK)

    def _commit(self, commit: Commit) -> Reply:
        assert commit.identity == self.bootstrap.identity
        self.heard.append(commit)
        newer = commit.step > self._committed
        self._committed = max(self._committed, commit.step)
        return self._reply(Verdict.OK if newer else Verdict.REPEATED)

    def _reply(self, verdict: Verdict) -> Reply:
        return Reply(
            verdict=verdict,
            order=self.order,
            reason=self.reason,
            heartbeat_s=self.heartbeat_s,
            committed_step=self._committed,
            now_s=self.clock(),
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                answer = plane._answer(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                if answer is None:
                    self.close_connection = True
                    return
                data = answer[1].model_dump_json().encode()
                self.send_response(answer[0])
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _serve

            def log_message(self, format: str, *args: object) -> None:
                """Quiet: tests look at `heard`."""

        return Handler

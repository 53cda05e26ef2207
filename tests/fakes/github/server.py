"""The fake as a test holds it, and as it answers over HTTP.

What `Control` can do can be asked of a server in another process too: POST /_control/NAME with the arguments as a JSON object.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tests.fakes.github.answering import Responder
from tests.fakes.github.clock import Clock
from tests.fakes.github.control import Control
from tests.fakes.github.http_front import HttpFront, Target
from tests.fakes.github.refusals import BAD_GATEWAY, SECONDARY_403, SECONDARY_429, SERVER_ERROR, UNAVAILABLE, problem
from tests.fakes.prime.faults import Answer, CutRequest, Fault, Hang, LoseAnswer, Rule, Rules, met

HANG_S_MAX = 120.0
CONTROL = "/_control/"
FAULTS: dict[str, Fault] = {
    "403": SECONDARY_403,
    "429": SECONDARY_429,
    "500": SERVER_ERROR,
    "502": BAD_GATEWAY,
    "503": UNAVAILABLE,
    "hang": Hang(),
    "hang-done": Hang(done=True),
    "cut": CutRequest(),
    "lost": LoseAnswer(),
}
"""By the names by which they can be ordered."""


@dataclass
class Call:
    """What a client sent, and what it was told; `status` is 0 where it was told nothing."""

    target: Target
    status: int = 0

    @property
    def method(self) -> str:
        return self.target.method

    @property
    def path(self) -> str:
        """Without the query."""
        return self.target.path

    @property
    def json(self) -> Any:
        return json.loads(self.target.body) if self.target.body else None


class FakeGitHub(Control):
    """Use as a context manager. `running`: its clock is the real one, and goes by itself, not only by `advance`."""

    def __init__(self, *, running: bool = False, port: int = 0) -> None:
        super().__init__(Clock(running=running))
        self._answering = Responder(self.world)
        self._rules = Rules()
        self._calls: list[Call] = []
        self._heard = threading.Condition(self.lock)
        self._released = threading.Event()
        self._server = HttpFront(self.reply, port)
        self.world.url = self.url
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="github", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self._server.broken, f"the fake itself failed: {self._server.broken}"

    @property
    def url(self) -> str:
        """For GITHUB_API_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    # -------------------------------------------------------------------------------------------------------- what it was asked

    @property
    def calls(self) -> list[Call]:
        """All there were, in the order in which they came."""
        with self.lock:
            return list(self._calls)

    def called(self) -> list[dict[str, Any]]:
        """The calls, as JSON has them; the body is text."""
        return [
            {"method": call.method, "path": call.path, "body": call.target.body.decode(errors="replace"), "status": call.status}
            for call in self.calls
        ]

    @property
    def violations(self) -> list[str]:
        """What was asked or answered outside GitHub's description of its API; a test asserts that there is nothing."""
        with self.lock:
            return list(self._answering.violations)

    def violated(self) -> list[str]:
        return self.violations

    def await_calls(self, method: str, path: str, count: int = 1, *, limit_s: float = HANG_S_MAX) -> None:
        """Until so many have come; they need not have been answered."""
        with self._heard:
            if not self._heard.wait_for(lambda: self._count(method, path) >= count, limit_s):
                raise AssertionError(f"{method} {path} was not asked {count} times within {limit_s:.0f} s")

    def _count(self, method: str, path: str) -> int:
        return sum((call.method, call.path) == (method, path) for call in self._calls)

    # ------------------------------------------------------------------------------------------------------------ what goes wrong

    def fail(self, fault: Fault | str, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1) -> None:
        """From now on the fault, or the one of that name in FAULTS, for `times` of the requests that match, from the `first` on; `path` is
        searched in the path."""
        with self.lock:
            self._rules.add(Rule(FAULTS[fault] if isinstance(fault, str) else fault, method, path, first, times))

    def heal(self) -> None:
        """No faults any more; what hangs is let go."""
        with self.lock:
            self._rules.clear()
            self._released.set()
            self._released = threading.Event()

    # ----------------------------------------------------------------------------------------------------------------- answering

    def reply(self, target: Target) -> Answer | None:
        """None: the connection is to be reset."""
        if target.path.startswith(CONTROL):
            return self._controlled(target)
        with self._heard:
            call = Call(target)
            self._calls.append(call)
            self._heard.notify_all()
            fault = self._rules.meet(target.method, target.path)
            told = met(fault, lambda: self._answering.answer(target))
            released = self._released
            call.status = told.status if told else 0
        if isinstance(fault, Hang):
            released.wait(HANG_S_MAX)
        return told

    def _controlled(self, target: Target) -> Answer:
        """What is not understood is told as it was raised: whoever asks is a test."""
        names = (*_public(Control), "called", "violated", "fail", "heal")
        deeds: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in names}
        name = target.path.removeprefix(CONTROL)
        if target.method != "POST" or name not in deeds:
            return problem(404, f"there is no {target.method} {target.path}; there are POSTs of {', '.join(sorted(deeds))}")
        try:
            told = deeds[name](**json.loads(target.body or b"{}"))
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            return problem(400, f"{type(error).__name__}: {error}")
        return Answer(200, json.dumps(told).encode())


def _public(of: type) -> list[str]:
    return [name for name, value in vars(of).items() if callable(value) and not name.startswith("_")]

"""The fake's server: as an object for tests, and over HTTP.

Everything in `Control` can also be called in a server in another process: POST /_control/NAME with the
arguments as a JSON object.
"""

import time
from collections.abc import Callable
from typing import Any

from tests.fakes.clock import START_S, Clock
from tests.fakes.github.control import Control
from tests.fakes.github.refusals import (
    BAD_GATEWAY,
    SECONDARY_403,
    SECONDARY_429,
    SERVER_ERROR,
    UNAVAILABLE,
    problem,
)
from tests.fakes.github.responder import Responder
from tests.fakes.http import CutRequest, Fault, Hang, LoseResponse, Request, Response, json_response

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
    "lost": LoseResponse(),
}
"""Faults by the names by which another process can request them."""


class FakeGitHub(Control):
    """The fake. `running`: its clock advances like the real one, not only by `advance`."""

    def __init__(self, *, running: bool = False, port: int = 0) -> None:
        super().__init__(Clock(running=running, start_s=time.time() if running else START_S), port=port)
        self._responder = Responder(self.world)

    def called(self) -> list[dict[str, Any]]:
        """Return the requests as JSON; the body is text."""
        return [
            {
                "method": each.method,
                "path": each.path,
                "body": each.body.decode(errors="replace"),
                "status": each.status,
            }
            for each in self.requests
        ]

    @property
    def violations(self) -> list[str]:
        """Return requests and responses outside of GitHub's description of its API; a test asserts that there
        are none.
        """
        with self.lock:
            return list(self._responder.violations)

    def violated(self) -> list[str]:
        return self.violations

    def fail(
        self, fault: Fault | str, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1
    ) -> None:
        """Set a fault, as for every fake; it may also be named as in FAULTS."""
        super().fail(
            FAULTS[fault] if isinstance(fault, str) else fault,
            method=method,
            path=path,
            first=first,
            times=times,
        )

    def handle(self, request: Request) -> Response | None:
        return self._controlled(request) if request.path.startswith(CONTROL) else super().handle(request)

    def respond(self, request: Request) -> Response:
        return self._responder.answer(request)

    def _controlled(self, request: Request) -> Response:
        """Answer a call of a control. An invalid call is answered with its exception, because the client is a
        test.
        """
        names = (*_public(Control), "called", "violated", "fail", "heal")
        deeds: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in names}
        name = request.path.removeprefix(CONTROL)
        if request.method != "POST" or name not in deeds:
            return problem(
                404,
                f"there is no {request.method} {request.path}; there are POSTs of {', '.join(sorted(deeds))}",
            )
        try:
            result = deeds[name](**(request.json or {}))
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            return problem(400, f"{type(error).__name__}: {error}")
        return json_response(result)


def _public(of: type) -> list[str]:
    return [name for name, value in vars(of).items() if callable(value) and not name.startswith("_")]

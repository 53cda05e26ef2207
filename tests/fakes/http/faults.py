"""Faults between a client and an API, and the requests that they apply to."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tests.fakes.http.messages import Response

ALWAYS = 1_000_000
"""Value for `times`: every future request."""


@dataclass(frozen=True)
class CutRequest:
    """The connection is reset, and the request has no effect."""


@dataclass(frozen=True)
class LoseResponse:
    """The request takes effect; then the connection is reset without a response."""


@dataclass(frozen=True)
class Hang:
    """No response until `heal` is called or the fake ends; then the connection is reset. `done`: the request
    takes effect at once.
    """

    done: bool = False


@dataclass(frozen=True)
class Delay:
    """Nothing happens until `heal` is called or the fake ends; then the request is handled normally."""


@dataclass(frozen=True)
class Stall:
    """The response is sent up to the middle of its body; the rest follows when `heal` is called or the fake
    ends.
    """


@dataclass(frozen=True)
class Replace:
    """The request takes effect; the client gets this response instead."""

    response: Response


@dataclass(frozen=True)
class Rewrite:
    """The request takes effect; the client gets the response as changed by `change`: with a garbled body, or
    a page that lacks rows.
    """

    change: Callable[[Response], Response]


Fault = Response | CutRequest | LoseResponse | Hang | Delay | Stall | Replace | Rewrite

TRUNCATED = Rewrite(lambda response: replace(response, body=response.body[: len(response.body) // 2]))
"""Half of the body, with a Content-Length that matches it, so that only its content shows the fault."""


def outcome(
    fault: Fault | None, respond: Callable[[], Response], stall: Callable[[], object]
) -> Response | None:
    """Return what a client gets of a server with this fault; None: the connection is reset. `respond` carries
    out the request; `stall` returns when the rest of a body may follow.
    """
    match fault:
        case Response():
            return fault
        case CutRequest() | Hang(done=False):
            return None
        case LoseResponse() | Hang():
            respond()
            return None
        case Replace(response=instead):
            respond()
            return instead
        case Rewrite(change=change):
            return change(respond())
        case Stall():
            return replace(respond(), halfway=stall)
        case Delay() | None:
            return respond()


Kind = TypeVar("Kind")


@dataclass
class _Rule(Generic[Kind]):
    fault: Kind
    method: str
    path: str
    first: int
    times: int
    matched: int = 0


class Rules(Generic[Kind]):
    """Which requests a fault applies to: `times` of those that match, from the `first` on, counted from 1.

    Of rules that match the same request the oldest is applied, and all count it. Not thread-safe.
    """

    def __init__(self) -> None:
        self._rules: list[_Rule[Kind]] = []

    def add(self, fault: Kind, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1) -> None:
        """Add a rule. `method` is matched in full, `path` is searched; both are regular expressions."""
        self._rules.append(_Rule(fault, method, path, first, times))

    def clear(self) -> None:
        self._rules.clear()

    def meet(self, method: str, path: str) -> Kind | None:
        """Count the request, and return its fault."""
        met: Kind | None = None
        for rule in self._rules:
            if re.fullmatch(rule.method, method) and re.search(rule.path, path):
                rule.matched += 1
                if met is None and rule.first <= rule.matched < rule.first + rule.times:
                    met = rule.fault
        return met

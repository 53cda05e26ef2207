"""What can go wrong between a client and the API, and with which requests."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ALWAYS = 1_000_000
"""For `times`: every request there will be."""


@dataclass(frozen=True)
class Answer:
    """The client gets this instead, and nothing is done."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CutRequest:
    """The connection is reset, and nothing is done."""


@dataclass(frozen=True)
class LoseAnswer:
    """What was asked is done; then the connection is reset without a word."""


@dataclass(frozen=True)
class Hang:
    """Nothing is said until the client gives up, or `heal` is called, or the fake ends. `done`: what was asked is done all the same."""

    done: bool = False


@dataclass(frozen=True)
class Replace:
    """What was asked is done; the client is told this instead."""

    answer: Answer


Fault = Answer | CutRequest | LoseAnswer | Hang | Replace


def met(fault: Fault | None, does: Callable[[], Answer]) -> Answer | None:
    """What a client is told by a server that meets the fault; `does`: what it would do and tell. None: the connection is to be reset."""
    match fault:
        case Answer():
            return fault
        case CutRequest() | Hang(done=False):
            return None
        case LoseAnswer() | Hang():
            does()
            return None
        case Replace(answer=told):
            does()
            return told
        case None:
            return does()


def detail(status: int, text: str, **headers: str) -> Answer:
    return Answer(status, json.dumps({"detail": text}).encode(), headers=headers)


def _page(status: int, title: str) -> Answer:
    return Answer(status, f"<html><head><title>{status} {title}</title></head><body><h1>{title}</h1></body></html>".encode(), "text/html")


TOO_MANY = detail(429, "Too many requests", **{"Retry-After": "1"})
SERVER_ERROR = detail(500, "Internal Server Error")
BAD_GATEWAY = _page(502, "Bad Gateway")
UNAVAILABLE = _page(503, "Service Temporarily Unavailable")
NO_STOCK_400 = detail(400, "Requested GPU is out of stock")
NO_STOCK_409 = detail(409, "No capacity left for this configuration")
NO_STOCK_503 = detail(503, "The provider is currently unavailable")
NO_FUNDS = detail(402, "Insufficient balance")


@dataclass(frozen=True)
class Rule:
    """The fault for `times` requests of those that match, from the `first` on, counted from 1; `path` is searched in the path."""

    fault: Fault
    method: str
    path: str
    first: int
    times: int

    def matches(self, method: str, path: str) -> bool:
        return re.fullmatch(self.method, method) is not None and re.search(self.path, path) is not None


class Rules:
    """Of rules that want the same request the oldest has it; not for several threads at once."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._seen: list[int] = []

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)
        self._seen.append(0)

    def clear(self) -> None:
        self._rules.clear()
        self._seen.clear()

    def meet(self, method: str, path: str) -> Fault | None:
        """Counts the request; the fault that it meets."""
        met: Fault | None = None
        for number, rule in enumerate(self._rules):
            if rule.matches(method, path):
                self._seen[number] += 1
                if met is None and rule.first <= self._seen[number] < rule.first + rule.times:
                    met = rule.fault
        return met

"""Requests, responses, and the targets of authenticated requests."""

from typing import NamedTuple

from prime_train.pages.dashboard.requests import Headers

CANARY = "canary"


class Request(NamedTuple):
    """A request. `headers`: those of signatures, in lower case. `path` has no query. `now_s`: the server's
    clock.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    now_s: int


class Response(NamedTuple):
    """A response. `body` is JSON. `wakes`: a run may need a decision now."""

    status: int
    body: bytes
    wakes: bool = False
    headers: Headers = ()


class RequestTarget(NamedTuple):
    """The target of a path: the verb, and the attempt whose key must have signed the request."""

    verb: str
    run: str
    attempt: int
    identity: str = ""


class StoreCall(NamedTuple):
    """A call of the store's method `name` by the operator; `body` is parsed when the call is carried out."""

    name: str
    body: bytes


class LaunchCall(NamedTuple):
    """A call of the store's method `name` by the holder of the launch key `key`, whose signature is valid;
    whether the key was revoked is checked when the call is carried out.
    """

    name: str
    body: bytes
    key: str


class GithubCall(NamedTuple):
    """A request for a launch key, with a token that GitHub may have signed."""

    token: str


class MarketCall(NamedTuple):
    """A request for the figures by which machines are compared."""

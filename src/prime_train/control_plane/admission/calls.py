"""What goes in and what comes out: requests, responses, and what a request that is believed asks for."""

from typing import NamedTuple

Headers = tuple[tuple[str, str], ...]

CANARY = "canary"


class Request(NamedTuple):
    """`headers` have lower-case names; only the two of the signature are read. `path` is without query. `now_s`: the server's clock."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    now_s: int


class Response(NamedTuple):
    """`body` is JSON. `wakes`: a run may have something to decide now."""

    status: int
    body: bytes
    wakes: bool = False
    headers: Headers = ()


class Place(NamedTuple):
    """Where a path leads: which attempt's key must have signed, and what is asked of whom."""

    verb: str
    run: str
    attempt: int
    identity: str = ""


class StoreCall(NamedTuple):
    """The operator calls the store's method `name`; `body` is read when it is carried out."""

    name: str
    body: bytes

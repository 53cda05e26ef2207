"""What goes in and what comes out: requests, responses, and the calls that a request may turn out to be."""

from dataclasses import dataclass
from typing import NamedTuple

from prime_train.core.wire import Beat, Commit, Wire

Headers = tuple[tuple[str, str], ...]

CANARY = "canary"


class Request(NamedTuple):
    """`headers` have lower-case names; only the two of the signature are read. `path` is without query. `now_s`: the server's clock."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    now_s: int


@dataclass(frozen=True, slots=True)
class Response:
    """`body` is JSON. `wakes`: a run may have something to decide now."""

    status: int
    body: bytes
    wakes: bool = False
    headers: Headers = ()


class BeatCall(NamedTuple):
    beat: Beat


@dataclass(frozen=True, slots=True)
class CommitCall:
    commit: Commit


@dataclass(frozen=True, slots=True)
class BootstrapCall:
    run: str
    epoch: int


@dataclass(frozen=True, slots=True)
class CanaryCall:
    nonce: str


@dataclass(frozen=True, slots=True)
class StoreCall:
    """The operator calls the store's method `name`; `body` is read when it is carried out."""

    name: str
    body: bytes


Call = BeatCall | CommitCall | BootstrapCall | CanaryCall | StoreCall


class Nonce(Wire):
    """Body of a canary call, and of its answer."""

    nonce: str

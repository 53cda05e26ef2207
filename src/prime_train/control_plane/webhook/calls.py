"""The calls that a request may turn out to be."""

from dataclasses import dataclass
from typing import NamedTuple

from prime_train.control_plane.admission.calls import StoreCall
from prime_train.core.wire import Commit, Heartbeat


class HeartbeatCall(NamedTuple):
    heartbeat: Heartbeat


@dataclass(frozen=True, slots=True)
class CommitCall:
    commit: Commit


@dataclass(frozen=True, slots=True)
class BootstrapCall:
    run: str
    attempt: int
    identity: str = ""


@dataclass(frozen=True, slots=True)
class KeysCall:
    """The attempt's keys to the bucket end soon."""

    run: str
    attempt: int
    identity: str = ""


@dataclass(frozen=True, slots=True)
class CanaryCall:
    nonce: str


Call = HeartbeatCall | CommitCall | BootstrapCall | KeysCall | CanaryCall | StoreCall

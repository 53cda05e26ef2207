"""The possible calls in a request."""

from dataclasses import dataclass
from typing import NamedTuple

from prime_train.runs.wire import Commit, Heartbeat
from prime_train.webhook.notices import NoticeCall
from prime_train.webhook.requests import GithubCall, LaunchCall, MarketCall, StoreCall


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
    """A request for new keys to the bucket because the attempt's keys expire soon."""

    run: str
    attempt: int
    identity: str = ""


@dataclass(frozen=True, slots=True)
class CanaryCall:
    nonce: str


Call = (
    HeartbeatCall
    | CommitCall
    | BootstrapCall
    | KeysCall
    | CanaryCall
    | StoreCall
    | LaunchCall
    | GithubCall
    | MarketCall
    | NoticeCall
)


def caller_of(call: Call) -> str:
    """Return who makes the call: one machine, or the holder of one launch key; empty for anybody else."""
    match call:
        case HeartbeatCall(message) | CommitCall(message):
            return f"{message.run}/{message.attempt}"
        case BootstrapCall(run, attempt) | KeysCall(run, attempt):
            return f"{run}/{attempt}"
        case LaunchCall(key=key):
            return f"launch key {key}"
        case _:
            return ""

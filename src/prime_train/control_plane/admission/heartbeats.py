"""Reads valid heartbeats: the text to store, and the fields that the store needs. The results equal those of the webhook's own parser."""

from typing import NamedTuple

from prime_train.control_plane.admission.calls import RequestTarget
from prime_train.core.fast_parsing import heartbeat as heartbeat_parser

VERBS = frozenset({"heartbeat", "exit"})


class PlainHeartbeat(NamedTuple):
    """A heartbeat to store. `text`: the heartbeat as JSON. `news`: the run is due now."""

    run: str
    attempt: int
    seq: int
    news: bool
    text: str
    identity: str = ""


def is_news(*, flagged: bool, exited: bool, preempting: bool) -> bool:
    """Return whether a heartbeat makes its run due now. Whatever the agent's own flag says, an exit or a coming preemption must not wait
    for the next check."""
    return flagged or exited or preempting


def plain_heartbeat(place: RequestTarget, body: bytes) -> PlainHeartbeat | None:
    """Return the heartbeat in the body of a request admitted to `place`. Return None if the request is not a heartbeat, or its validity is
    uncertain."""
    values = heartbeat_parser.read(_text(body)) if place.verb in VERBS else None
    if values is None or (values["run"], values["attempt"], values.get("identity", "")) != (place.run, place.attempt, place.identity):
        return None
    if place.verb == "exit" and "exit" not in values:
        return None
    if is_news(flagged="news" in values, exited="exit" in values, preempting="preempting" in values):
        values["news"] = True
    return PlainHeartbeat(place.run, place.attempt, values["seq"], "news" in values, heartbeat_parser.dumped(values), place.identity)


def _text(body: bytes) -> str:
    """Return the body as text; empty, which is not a heartbeat, if it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return ""

"""Heartbeats that are surely right: what is kept of one, and what its store must know. The same that the webhook's own parser makes of
them."""

from typing import NamedTuple

from prime_train.control_plane.admission.calls import Place
from prime_train.core.plain import heartbeat as heartbeat_plain

VERBS = frozenset({"heartbeat", "exit"})


class PlainHeartbeat(NamedTuple):
    """`text`: the heartbeat as JSON. `news`: the run is due now."""

    run: str
    attempt: int
    seq: int
    news: bool
    text: str
    identity: str = ""


def plain_heartbeat(place: Place, body: bytes) -> PlainHeartbeat | None:
    """The heartbeat in the body of a request that was admitted there. None: it is something else, or odd, or wrong."""
    values = heartbeat_plain.read(_text(body)) if place.verb in VERBS else None
    if values is None or (values["run"], values["attempt"], values.get("identity", "")) != (place.run, place.attempt, place.identity):
        return None
    if place.verb == "exit" and "exit" not in values:
        return None
    if "exit" in values or "preempting" in values:
        values["news"] = True  # whether or not the agent says so
    return PlainHeartbeat(place.run, place.attempt, values["seq"], "news" in values, heartbeat_plain.dumped(values), place.identity)


def _text(body: bytes) -> str:
    """Empty, which is no heartbeat, where it is no text."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return ""

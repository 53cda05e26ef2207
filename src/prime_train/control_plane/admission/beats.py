"""Beats that are surely right: what is kept of one, and what its store must know. The same that the webhook's own parser makes of them."""

from typing import NamedTuple

from prime_train.control_plane.admission.calls import Place
from prime_train.core.plain import heartbeat as beat_plain

VERBS = frozenset({"beat", "exit"})


class PlainBeat(NamedTuple):
    """`text`: the beat as JSON. `news`: the run is due now."""

    run: str
    epoch: int
    seq: int
    news: bool
    text: str
    identity: str = ""


def plain_beat(place: Place, body: bytes) -> PlainBeat | None:
    """The beat in the body of a request that was admitted there. None: it is something else, or odd, or wrong."""
    values = beat_plain.read(_text(body)) if place.verb in VERBS else None
    if values is None or (values["run"], values["epoch"], values.get("identity", "")) != (place.run, place.epoch, place.identity):
        return None
    if place.verb == "exit" and "exit" not in values:
        return None
    if "exit" in values or "preempting" in values:
        values["news"] = True  # whether or not the agent says so
    return PlainBeat(place.run, place.epoch, values["seq"], "news" in values, beat_plain.dumped(values), place.identity)


def _text(body: bytes) -> str:
    """Empty, which is no beat, where it is no text."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return ""

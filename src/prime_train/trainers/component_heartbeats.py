"""Heartbeats of a trainer's components: each calls an address on loopback by GET, most often after every step.

A call does not say which step it was. It tells what progress cannot: which component stopped first, and so which of them to look at.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "/hb/"


@dataclass(frozen=True)
class ComponentHeartbeats:
    """`port_variable`: the environment variable that tells the trainer the port to call; unset, nobody listens. Component NAME calls
    `/hb/NAME`."""

    port_variable: str
    components: tuple[str, ...]


@dataclass(frozen=True)
class Heard:
    """How many calls of a component came, and when the last one did."""

    count: int = 0
    last_s: float | None = None


def component_of(path: str, components: tuple[str, ...]) -> str | None:
    """The component that calls this path; None where it is none of them."""
    name = path.partition("?")[0].removeprefix(PREFIX)
    return name if path.startswith(PREFIX) and name in components else None


def first_silent(heard: Mapping[str, Heard], now_s: float, *, quiet_s: float) -> str | None:
    """The component to look at once nothing was heard for `quiet_s`: the one that fell silent first, for the others wait for it. None
    while any of them still calls, and before all of them ever did."""
    last_s = {component: calls.last_s for component, calls in heard.items() if calls.last_s is not None}
    if not last_s or len(last_s) < len(heard) or now_s - max(last_s.values()) < quiet_s:
        return None
    return min(last_s, key=last_s.__getitem__)

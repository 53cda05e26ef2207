"""Heartbeats of a trainer's components: each sends a GET request to a loopback address, usually after every
step.

A heartbeat does not contain the step. It shows what progress cannot: which component stopped first, and so
which of them to examine.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "/hb/"


@dataclass(frozen=True)
class ComponentHeartbeats:
    """How a trainer's components send heartbeats. `port_variable` is the environment variable with the port
    to call; if it is unset, no server listens. Component NAME requests `/hb/NAME`.
    """

    port_variable: str
    components: tuple[str, ...]


@dataclass(frozen=True)
class ReceivedHeartbeats:
    """Number of heartbeats received from a component, and the time of the last one in seconds."""

    count: int = 0
    last_s: float | None = None


def component_of(path: str, components: tuple[str, ...]) -> str | None:
    """Return the component whose heartbeats use this request path, or None if no component does."""
    name = path.partition("?")[0].removeprefix(PREFIX)
    return name if path.startswith(PREFIX) and name in components else None


def first_silent(received: Mapping[str, ReceivedHeartbeats], now_s: float, *, quiet_s: float) -> str | None:
    """Return the component to examine after `quiet_s` seconds without any heartbeat: the one that stopped
    first, because the others wait for it.

    Return None while any component still sends heartbeats, and until each has sent at least one.
    """
    last_s = {component: calls.last_s for component, calls in received.items() if calls.last_s is not None}
    if not last_s or len(last_s) < len(received) or now_s - max(last_s.values()) < quiet_s:
        return None
    return min(last_s, key=last_s.__getitem__)

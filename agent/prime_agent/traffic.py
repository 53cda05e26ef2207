"""Counts what the machine receives and sends, because some providers charge for it by the byte.

The kernel counts per interface, in the agent's own network namespace, which is the container's. Only interfaces with a default route count:
they lead to the Internet, where others carry the same bytes a second time between containers. Traffic from before the agent was started
(the image, the installation) is not counted, because the counters of a machine that is not a container may be years old.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from prime_train.core.wire import INTEGER_MAX, SECONDS_MAX, Traffic

NET = Path("/proc/self/net")
ROUTE_UP = 0x1
_ANY_4, _ANY_6 = "00000000", "0" * 32

Counters = Mapping[str, tuple[int, int]]
"""Bytes received and sent, by interface."""


class TrafficMeter:
    """Traffic since the meter was made. `clock` returns monotonic seconds; `net`: the kernel's folder of network figures."""

    def __init__(self, clock: Callable[[], float], net: Path = NET) -> None:
        self._clock, self._net = clock, net
        self._begun_s, self._last = clock(), _counters(net)
        self._down_bytes = self._up_bytes = 0

    def read(self) -> Traffic | None:
        """Return the traffic so far; None if the kernel does not tell it."""
        found = _counters(self._net)
        for name, (down, up) in found.items():
            last_down, last_up = self._last.get(name, (down, up))
            # An interface that was made anew counts from zero.
            self._down_bytes += down - last_down if down >= last_down else down
            self._up_bytes += up - last_up if up >= last_up else up
        self._last = {**self._last, **found}
        if not self._last:
            return None
        return Traffic(
            down_bytes=min(self._down_bytes, INTEGER_MAX),
            up_bytes=min(self._up_bytes, INTEGER_MAX),
            seconds=min(max(1, int(self._clock() - self._begun_s)), SECONDS_MAX),
        )


def _counters(net: Path) -> Counters:
    """Return the counters of the interfaces that lead to the Internet; empty if they cannot be read."""
    try:
        leading = _with_default_route(net)
        lines = (net / "dev").read_text().splitlines()
        rows = {name.strip(): text.split() for name, found, text in (line.partition(":") for line in lines) if found}
        return {name: (int(row[0]), int(row[8])) for name, row in rows.items() if name in leading}
    except (OSError, ValueError, IndexError):
        return {}


def _with_default_route(net: Path) -> set[str]:
    rows = [line.split() for line in (net / "route").read_text().splitlines()[1:]]
    found = {row[0] for row in rows if row[1] == _ANY_4 and row[7] == _ANY_4 and int(row[3], 16) & ROUTE_UP}
    six = net / "ipv6_route"
    rows = [line.split() for line in six.read_text().splitlines()] if six.exists() else []
    found |= {row[9] for row in rows if row[0] == _ANY_6 and row[1] == "00" and int(row[8], 16) & ROUTE_UP}
    return found - {"lo"}

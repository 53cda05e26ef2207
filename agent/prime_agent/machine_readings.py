"""Reads the machine's state in its own thread, so that a hanging driver makes the figures old but delays no
heartbeat.
"""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from prime_agent.event_queue import Inbox
from prime_agent.events import Sensed
from prime_agent.gpu.reading import GpuReader
from prime_train.runs.wire import INTEGER_MAX, SECONDS_MAX, Traffic

EVERY_S_MIN, EVERY_S_MAX = 1.0, 10.0
GPUS_S_MAX = 3.0
"""Seconds to wait for the driver; after that it goes on in the background, and its result is available next
time.
"""

NET = Path("/proc/self/net")
ROUTE_UP = 0x1
_ANY_4, _ANY_6 = "00000000", "0" * 32

_log = logging.getLogger(__name__)

Counters = Mapping[str, tuple[int, int]]
"""Bytes received and sent, by interface."""


class TrafficMeter:
    """What the machine has received and sent since the meter was made: some providers charge for it by the
    byte. `clock` returns monotonic seconds; `net`: the kernel's folder of network figures.

    The kernel counts per interface, in the agent's own network namespace, which is the container's. Only
    interfaces with a default route count: they lead to the Internet, where others carry the same bytes a
    second time between containers. Traffic from before the agent was started (the image, the installation) is
    not counted, because the counters of a machine that is not a container may be years old.
    """

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


def read(disk: Path, gpus: GpuReader, meter: TrafficMeter) -> Sensed:
    """Return the current figures; those of the GPUs include their age. Raises OSError."""
    return Sensed(round(shutil.disk_usage(disk).free / 2**30, 3), gpus.look(GPUS_S_MAX), meter.read())


class SensorThread:
    """Thread that reports the machine's state three times per heartbeat interval, but every 10 s at least and
    every second at most.
    """

    def __init__(self, disk: Path, gpus: GpuReader, inbox: Inbox, *, heartbeat_s: int) -> None:
        self._disk, self._gpus, self._inbox = disk, gpus, inbox
        self._meter = TrafficMeter(time.monotonic)
        self._every_s = min(EVERY_S_MAX, max(EVERY_S_MIN, heartbeat_s / 3))
        self._pause = threading.Event()
        threading.Thread(target=self._run, name="sensors", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._inbox.put(read(self._disk, self._gpus, self._meter))
            except OSError as error:
                _log.warning("the disk usage cannot be read: %s", error)
            self._pause.wait(self._every_s)


def _counters(net: Path) -> Counters:
    """Return the counters of the interfaces that lead to the Internet; empty if they cannot be read."""
    try:
        leading = _with_default_route(net)
        lines = (net / "dev").read_text().splitlines()
        rows = {
            name.strip(): text.split()
            for name, found, text in (line.partition(":") for line in lines)
            if found
        }
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

"""The time of a store: counted from the host's uptime for a store on this machine, requested from a remote
store.

The wall clock of a machine can be wrong, and it can be set forward or back while runs train; a decision that
compares two readings of it would mistake such a jump for hours of silence or of rent. So no decision uses the
wall clock. A store on this machine measures time as the seconds since boot plus a stored offset; all
processes of the machine read the same value, and it cannot be set. A remote store returns its own time, and a
process counts on from that reading for some seconds before it requests a new one.
"""

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from prime_train.errors import TemporaryError

COUNTED_S_MAX = 10.0
"""Seconds that a process counts on from one reading of a store's time before it requests the next."""
ANSWER_S_MAX = 10.0
"""Seconds that a response with the store's time may take; a slower response is too inaccurate to decide
by.
"""
STEP_S_MAX = 1.0
"""Seconds that wall clock and monotonic clock may drift apart; more means that this process stood still or
the wall clock was set.
"""
TRIES_MAX = 2
_UPTIME_BYTES_MAX = 64
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def uptime_s() -> float:
    """Return the seconds since this machine booted, including those in which it slept.

    Read from the kernel where possible, because a library loaded into the process may replace the process's
    clock.
    """
    file = _uptime_file()
    if file is None:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return float(os.pread(file, _UPTIME_BYTES_MAX, 0).split()[0])


@cache
def _uptime_file() -> int | None:
    """Return an open descriptor of /proc/uptime, or None if there is no such file. Kept open because every
    heartbeat reads it.
    """
    try:
        return os.open("/proc/uptime", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


@cache
def boot_id() -> str:
    """Return an identifier of this machine's current boot, the same in all its processes; empty if the system
    has none.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return _boot_session() if sys.platform == "darwin" else ""


def _boot_session() -> str:
    import subprocess

    command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()


class Anchor(NamedTuple):
    """The reference of a store's time on one machine: store time = uptime of the boot `boot` + `offset_s`."""

    boot: str
    offset_s: float

    def now_s(self, uptime_s: float) -> float:
        return uptime_s + self.offset_s


def anchored(stored: Anchor | None, last_s: int, *, boot: str, uptime_s: float, wall_s: float) -> Anchor:
    """Return the anchor for the current boot: the stored one if it was made in this boot, else a new one from
    the wall clock, because nothing else tells how long the machine was off. A new anchor starts at `last_s`,
    the store's last known time, or later, so that the store's time never runs backward.

    Two boots without an id never count as the same boot.
    """
    if stored is not None and boot and stored.boot == boot and stored.now_s(uptime_s) >= last_s - STEP_S_MAX:
        return stored
    return Anchor(boot, max(float(last_s), wall_s) - uptime_s)


def counting_on(anchor: Anchor) -> Callable[[], float]:
    """Return a function that reads the store's time in seconds by this anchor, valid during this boot."""
    return lambda: anchor.now_s(uptime_s())


class Reading(NamedTuple):
    """A store's time and both clocks of this process at one moment, in seconds."""

    store_s: float
    monotonic_s: float
    wall_s: float


class MeasuredClock:
    """The time of a remote store, in whole seconds. Thread-safe.

    `ask` requests and returns the store's time. The clock counts on from a reading by `monotonic`, for at
    most `counted_s`. `wall` is never used as a time, only as a check: if it and `monotonic` have drifted
    apart, this process was frozen or asleep, and `ask` is called again. Raises TemporaryError if the store's
    time cannot be determined, and whatever `ask` raises.
    """

    def __init__(
        self,
        ask: Callable[[], float],
        *,
        counted_s: float = COUNTED_S_MAX,
        monotonic: Callable[[], float] = uptime_s,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._ask, self._counted_s, self._monotonic, self._wall = ask, counted_s, monotonic, wall
        self._known: Reading | None = None

    def __call__(self) -> int:
        known = self._known
        if known is None or not self._is_fresh(known):
            known = self._known = self._measured()
        return int(known.store_s + self._monotonic() - known.monotonic_s)

    def begin(self) -> Reading:
        """Return both clocks of this process, read right before a request to the store."""
        return Reading(0.0, self._monotonic(), self._wall())

    def end(self, began: Reading, store_s: float) -> None:
        """Use the store's time from a response whose request started at `began`; ignored if the response took
        too long.
        """
        known = self._read(began, store_s)
        if known is not None:
            self._known = known

    def _is_fresh(self, known: Reading) -> bool:
        counted_s = self._monotonic() - known.monotonic_s
        return (
            0 <= counted_s <= self._counted_s and abs(self._wall() - known.wall_s - counted_s) <= STEP_S_MAX
        )

    def _measured(self) -> Reading:
        for _ in range(TRIES_MAX):
            began = self.begin()
            known = self._read(began, self._ask())
            if known is not None:
                return known
        raise TemporaryError(
            f"the store's time is not known: the answer took more than {ANSWER_S_MAX:.0f} s, or the clock of "
            "this machine was changed"
        )

    def _read(self, began: Reading, store_s: float) -> Reading | None:
        took_s = self._monotonic() - began.monotonic_s
        stepped_s = self._wall() - began.wall_s - took_s
        if not 0 <= took_s <= ANSWER_S_MAX or abs(stepped_s) > STEP_S_MAX:
            return None
        return Reading(store_s + took_s / 2, began.monotonic_s + took_s, began.wall_s + took_s)


def http_date_s(text: str) -> float | None:
    """Return the Unix time of an HTTP Date such as "Sun, 06 Nov 1994 08:49:37 GMT": the middle of that
    second. None if it is invalid.
    """
    parts = text.split()
    try:
        _, day, month, year, at, zone = parts
        hour, minute, second = map(int, at.split(":"))
        moment = datetime(
            int(year), _MONTHS.index(month) + 1, int(day), hour, minute, min(second, 59), tzinfo=UTC
        )
    except ValueError:
        return None
    return moment.timestamp() + 0.5 if zone == "GMT" else None


def wall_s() -> int:
    """Return this machine's clock in whole seconds."""
    return int(time.time())

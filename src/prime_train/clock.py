"""Where a store's time comes from: the host's uptime for a store on this machine, what the store said for one that is elsewhere.

The wall clock of a machine can be wrong, and it can be set forward and back while runs train; decisions that compare two readings of it
would take a step of the clock for hours of silence or of rent. So no decision is made by it. A store on this machine counts on from one
moment by the time since the machine booted, which every process of the machine reads alike and nobody can set. A store elsewhere says what
time it is there, and a process counts on from that for some seconds before it asks again.
"""

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from prime_train.core.errors import TemporaryError

COUNTED_S_MAX = 10.0
"""Seconds counted on from what a store said, before it is asked again."""
ANSWER_S_MAX = 10.0
"""An answer that took longer does not tell the time well enough to decide by it."""
STEP_S_MAX = 1.0
"""This process has stood still, or its wall clock was set, where its two clocks went apart by more."""
TRIES_MAX = 2
_UPTIME_BYTES_MAX = 64
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def uptime_s() -> float:
    """Seconds since this machine booted, those in which it slept included.

    Read from the kernel where it can be: a process may be given another clock by a library that is loaded into it.
    """
    file = _uptime_file()
    if file is None:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return float(os.pread(file, _UPTIME_BYTES_MAX, 0).split()[0])


@cache
def _uptime_file() -> int | None:
    """Kept open: it is read with every heartbeat."""
    try:
        return os.open("/proc/uptime", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


@cache
def boot_id() -> str:
    """A name for this machine's boot, the same in all its processes; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return _boot_session() if sys.platform == "darwin" else ""


def _boot_session() -> str:
    import subprocess

    command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()


class Anchor(NamedTuple):
    """What fixes the time of a store on one machine: its seconds are the uptime of that boot plus `offset_s`."""

    boot: str
    offset_s: float

    def now_s(self, uptime_s: float) -> float:
        return uptime_s + self.offset_s


def anchored(stored: Anchor | None, last_s: int, *, boot: str, uptime_s: float, wall_s: float) -> Anchor:
    """The anchor of this boot: the stored one, if it was made in this boot. Else only the wall clock can tell how long the machine was off;
    it counts from `last_s`, the store's last known time, at the earliest, so that the store's time never runs backward.

    A boot without a name is never known to be the same one.
    """
    if stored is not None and boot and stored.boot == boot and stored.now_s(uptime_s) >= last_s - STEP_S_MAX:
        return stored
    return Anchor(boot, max(float(last_s), wall_s) - uptime_s)


def counting_on(anchor: Anchor) -> Callable[[], float]:
    """The clock of that anchor, in this boot."""
    return lambda: anchor.now_s(uptime_s())


class Reading(NamedTuple):
    """A store's time and both clocks of this process at one moment, in seconds."""

    store_s: float
    monotonic_s: float
    wall_s: float


class MeasuredClock:
    """The time of a store elsewhere, in whole seconds. Any thread may call.

    `ask` returns the store's time, by asking it. The clock counts on from an answer by `monotonic`, for `counted_s` at most. `wall` is
    never used as a time, only as a witness: where it and `monotonic` went apart, this process was frozen or asleep, and the store is asked
    again. Raises TemporaryError where the store's time is not known, and whatever `ask` raises.
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
        """Both clocks of this process, before the store is asked for anything."""
        return Reading(0.0, self._monotonic(), self._wall())

    def end(self, began: Reading, store_s: float) -> None:
        """An answer of the store told its time on the way; it counts if it came soon enough."""
        known = self._read(began, store_s)
        if known is not None:
            self._known = known

    def _is_fresh(self, known: Reading) -> bool:
        counted_s = self._monotonic() - known.monotonic_s
        return 0 <= counted_s <= self._counted_s and abs(self._wall() - known.wall_s - counted_s) <= STEP_S_MAX

    def _measured(self) -> Reading:
        for _ in range(TRIES_MAX):
            began = self.begin()
            known = self._read(began, self._ask())
            if known is not None:
                return known
        raise TemporaryError(f"the store's time is not known: it took more than {ANSWER_S_MAX:.0f} s to tell, or the clock here was set")

    def _read(self, began: Reading, store_s: float) -> Reading | None:
        took_s = self._monotonic() - began.monotonic_s
        stepped_s = self._wall() - began.wall_s - took_s
        if not 0 <= took_s <= ANSWER_S_MAX or abs(stepped_s) > STEP_S_MAX:
            return None
        return Reading(store_s + took_s / 2, began.monotonic_s + took_s, began.wall_s + took_s)


def http_date_s(text: str) -> float | None:
    """The moment that a Date header of HTTP names, such as "Sun, 06 Nov 1994 08:49:37 GMT": the middle of that second. None: it is none."""
    parts = text.split()
    try:
        _, day, month, year, at, zone = parts
        hour, minute, second = map(int, at.split(":"))
        moment = datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() + 0.5 if zone == "GMT" else None

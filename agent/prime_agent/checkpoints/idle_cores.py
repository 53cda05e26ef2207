"""How many cores are available for encoding: those idle during an upload, and those that the agent's own
encoding threads use.

Sending needs cores too, and so may the trainer: a codec that would make the upload faster makes it slower if
it takes cores that the senders need.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

WINDOW_S = 0.5
"""Shortest interval to measure; shorter ones are imprecise, because the counters advance in hundredths of a
second.
"""


def idle_s() -> float:
    """Return the seconds that all cores of this machine have been idle since boot, summed up, including waits
    for a disk.
    """
    times = psutil.cpu_times()
    return float(times.idle + getattr(times, "iowait", 0.0))


@dataclass(frozen=True)
class _Mark:
    at_s: float
    idle_s: float
    encoding_s: float


class IdleCores:
    """Measurement of the available cores; thread-safe."""

    def __init__(self, monotonic_s: Callable[[], float], idle_s: Callable[[], float] = idle_s) -> None:
        self._monotonic_s = monotonic_s
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._encoding_s = 0.0
        self._since = self._mark()
        self._cores: float | None = None

    @property
    def cores(self) -> float | None:
        """The cores available over about the last half second.

        At the start of an upload this is the mean over the previous upload; it is None until an upload has
        lasted long enough.
        """
        with self._lock:
            if self._monotonic_s() - self._since.at_s >= WINDOW_S:
                self._since = self._measured_from(self._since)
            return self._cores

    @contextmanager
    def upload(self) -> Iterator[None]:
        """Measure over one upload, which happens inside the block."""
        with self._lock:
            began = self._since = self._mark()
        try:
            yield
        finally:
            with self._lock:
                self._measured_from(began)

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Measure the CPU time of one encoder's work, in its own thread."""
        began_s = time.thread_time()
        try:
            yield
        finally:
            with self._lock:
                self._encoding_s += time.thread_time() - began_s

    def _mark(self) -> _Mark:
        return _Mark(self._monotonic_s(), self._idle_s(), self._encoding_s)

    def _measured_from(self, began: _Mark) -> _Mark:
        now = self._mark()
        took_s = now.at_s - began.at_s
        if took_s >= WINDOW_S:
            self._cores = (now.idle_s - began.idle_s + now.encoding_s - began.encoding_s) / took_s
        return now

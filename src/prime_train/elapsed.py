"""Elapsed seconds that include the time in which a machine sleeps."""

import threading
import time
from collections.abc import Callable


class Elapsed:
    """A clock that only rises. Python's monotonic clock stands still while a laptop sleeps, and while AWS
    keeps a function's process frozen between two calls, for hours; the wall clock continues then, but can be
    set back. At each reading this clock advances by whichever of the two advanced further since the last
    reading. Thread-safe. `monotonic`, `wall`: these two clocks, in seconds.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic, self._wall, self._lock = monotonic, wall, threading.Lock()
        self._monotonic_s, self._wall_s, self._now_s = monotonic(), wall(), 0.0

    def __call__(self) -> float:
        with self._lock:
            monotonic_s, wall_s = self._monotonic(), self._wall()
            self._now_s += max(monotonic_s - self._monotonic_s, wall_s - self._wall_s)
            self._monotonic_s, self._wall_s = monotonic_s, wall_s
            return self._now_s

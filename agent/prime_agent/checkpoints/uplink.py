"""Measured speed of this machine's connection to the bucket, and the limit on what uploads may use."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MEASURED_BYTES_MIN = 64 * 2**20
"""Minimum number of sent bytes from which the connection's speed can be measured."""
FORGOTTEN_SHARE = 0.2
PAUSE_S_MAX = 1.0


class Uplink:
    """The connection to the bucket; thread-safe. `bytes_per_s_max` limits uploads; None means no limit."""

    def __init__(self, monotonic_s: Callable[[], float], *, bytes_per_s_max: float | None = None) -> None:
        self._monotonic_s = monotonic_s
        self._limit = bytes_per_s_max
        self._free_s = monotonic_s()
        self._lock = threading.Lock()
        self._flying = 0
        self._since_s = 0.0
        self._busy_s = 0.0
        self._bytes = 0
        self._best: float | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """The connection's measured speed in bytes per second; None until enough was sent."""
        with self._lock:
            now = self._rate()
            known = [rate for rate in (now, self._best) if rate is not None]
            return max(known, default=None)

    def begin(self) -> None:
        """Start measuring a new upload. The best earlier speed stays, reduced a little each time, because an
        upload that waits for its encoders measures too little.
        """
        with self._lock:
            now, before = self._rate(), self._best
            faded = before * (1 - FORGOTTEN_SHARE) if before is not None else None
            self._best = max((rate for rate in (now, faded) if rate is not None), default=None)
            self._busy_s, self._bytes, self._since_s = 0.0, 0, self._monotonic_s()

    @contextmanager
    def sending(self, size: int, *, stopped: threading.Event) -> Iterator[None]:
        """Send `size` bytes inside the block: wait for a turn if there is a limit, and count the bytes if the
        block succeeds.
        """
        self._wait(size, stopped)
        with self._lock:
            self._flying += 1
            if self._flying == 1:
                self._since_s = self._monotonic_s()
        sent = 0
        try:
            yield
            sent = size
        finally:
            with self._lock:
                self._bytes += sent
                self._flying -= 1
                if self._flying == 0:
                    self._busy_s += self._monotonic_s() - self._since_s

    def _wait(self, size: int, stopped: threading.Event) -> None:
        if self._limit is None:
            return
        with self._lock:
            turn_s = max(self._free_s, self._monotonic_s())
            self._free_s = turn_s + size / self._limit
        while (left_s := turn_s - self._monotonic_s()) > 0 and not stopped.wait(min(left_s, PAUSE_S_MAX)):
            pass

    def _rate(self) -> float | None:
        busy_s = self._busy_s + (self._monotonic_s() - self._since_s if self._flying else 0.0)
        return self._bytes / busy_s if self._bytes >= MEASURED_BYTES_MIN and busy_s > 0 else None

"""A fake's own time: it stands still or runs with the real one, and can be advanced."""

import time
from datetime import UTC, datetime

START_S = 1_790_000_000.0


class Clock:
    """A clock. `running`: seconds pass by themselves; otherwise only by `advance`."""

    def __init__(self, *, running: bool, start_s: float = START_S) -> None:
        self._start_s = start_s
        self._running = running
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        return self._start_s + (time.monotonic() - self._began_s if self._running else 0.0)

    def advance(self, seconds: float) -> None:
        self._start_s += seconds

    def set(self, at_s: float) -> None:
        self._start_s += at_s - self.now_s()


def iso(at_s: float) -> str:
    """Return the time as ISO 8601 in full seconds, with a Z."""
    return _written(int(at_s), "seconds")


def iso_ms(at_s: float) -> str:
    """Return the time as ISO 8601 in milliseconds, with a Z."""
    return _written(at_s, "milliseconds")


def _written(at_s: float, timespec: str) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")

"""The fake's own time: it stands still, or runs with the real one, and can be put forward."""

import time
from datetime import UTC, datetime

START_S = 1_790_000_000.0


class Clock:
    """`running`: seconds pass by themselves; otherwise only by `advance`."""

    def __init__(self, *, running: bool) -> None:
        self._running = running
        self._advanced_s = 0.0
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        return START_S + self._advanced_s + (time.monotonic() - self._began_s if self._running else 0.0)

    def advance(self, seconds: float) -> None:
        self._advanced_s += seconds


def iso(at_s: float) -> str:
    """As Prime writes moments: with a Z."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""The fake's own time: it stands still, or runs with the real one, and can be put forward."""

import time
from datetime import UTC, datetime

START_S = 1_790_000_000.0


class Clock:
    """`running`: it is the real time, that of whoever asks, and goes by itself; otherwise it stands, and only `advance` moves it."""

    def __init__(self, *, running: bool) -> None:
        self._start_s = time.time() if running else START_S
        self._running = running
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        return self._start_s + (time.monotonic() - self._began_s if self._running else 0.0)

    def advance(self, seconds: float) -> None:
        self._start_s += seconds

    def set(self, at_s: float) -> None:
        self._start_s += at_s - self.now_s()


def iso(at_s: float) -> str:
    """As GitHub writes moments: whole seconds, with a Z."""
    return datetime.fromtimestamp(int(at_s), UTC).isoformat().replace("+00:00", "Z")

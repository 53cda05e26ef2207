"""The agent's two clocks. Decisions use only the monotonic one; the wall clock is for timestamps of files and
signatures.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic_s(self) -> float: ...

    def wall_s(self) -> float: ...


class SystemClock:
    def monotonic_s(self) -> float:
        return time.monotonic()

    def wall_s(self) -> float:
        return time.time()

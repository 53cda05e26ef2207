"""Virtual time: a heap of future events, and one that may happen while another waits.

A call that takes time (`spend`) lets every other due event happen before it returns, nested: that is how two
watchers overlap at every port call although each of them is plain synchronous code.
"""

import heapq
from collections.abc import Callable

START_S = 1_000_000
EVENTS_MAX = 400_000
DEPTH_MAX = 3


class Endless(Exception):
    """There are more events than any correct run of the simulation has."""


class Loop:
    """The event loop. `each` is called after every event, with the clock at its time, to check the
    promises.
    """

    def __init__(self) -> None:
        self.now_s: float = START_S
        self.events = 0
        self.depth = 0
        self.each: Callable[[], None] = _nothing
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0

    def at(self, at_s: float, act: Callable[[], None]) -> None:
        self._made += 1
        heapq.heappush(self._heap, (max(at_s, self.now_s), self._made, act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        self.at(self.now_s + delay_s, act)

    def run(self, until: Callable[[], bool]) -> None:
        """Run until `until()` returns True (called after each event) or no event is left."""
        while self._heap and not until():
            self._fire()

    def spend(self, seconds: float) -> None:
        """Let the caller wait this long, while other due events happen. At the deepest level nothing takes
        time.
        """
        if self.depth >= DEPTH_MAX:
            return
        end_s = self.now_s + seconds
        self.depth += 1
        try:
            while self._heap and self._heap[0][0] <= end_s:
                self._fire()
        finally:
            self.depth -= 1
        self.now_s = max(self.now_s, end_s)

    def _fire(self) -> None:
        at_s, _, act = heapq.heappop(self._heap)
        self.now_s = max(self.now_s, at_s)
        self.events += 1
        if self.events > EVENTS_MAX:
            raise Endless(f"{EVENTS_MAX} events by second {self.now_s:.0f}")
        act()
        self.each()


def _nothing() -> None:
    return None

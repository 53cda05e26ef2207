"""Where all events arrive. Putting never waits, from whatever thread or signal handler.

It is bounded by who puts: every other source has at most a few events under way, and the steps, which a trainer may pour out, are
gathered into one event and cut to the newest `ROWS_MAX`.
"""

import queue
import threading
from collections import deque

from prime_agent.events import Event, StepsSeen
from prime_train.trainers import Progress

ROWS_MAX = 10_000


class ThreadDied(Exception):
    """A thread of the agent's has ended by an exception that nobody expected: what it did is not done any more."""


class Inbox:
    def __init__(self) -> None:
        # A plain Queue may not be put to from a signal handler that interrupts its own get.
        self._queue: queue.SimpleQueue[Event | ThreadDied | None] = queue.SimpleQueue()
        self._rows: deque[Progress] = deque(maxlen=ROWS_MAX)
        self._lock = threading.Lock()

    def put(self, event: Event | ThreadDied) -> None:
        self._queue.put(event)

    def put_steps(self, rows: list[Progress]) -> None:
        with self._lock:
            waiting = bool(self._rows)
            self._rows.extend(rows)
        if rows and not waiting:
            self._queue.put(None)

    def get(self, timeout_s: float) -> Event | None:
        """The oldest event, or None after `timeout_s`. Raises ThreadDied where that is what was put."""
        try:
            event = self._queue.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None
        if isinstance(event, ThreadDied):
            raise event
        if event is not None:
            return event
        with self._lock:
            rows = tuple(self._rows)
            self._rows.clear()
        return StepsSeen(rows)

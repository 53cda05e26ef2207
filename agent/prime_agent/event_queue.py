"""Queue of all events. Adding one never blocks, from any thread or signal handler.

Its length is bounded by its sources: each has at most a few events in flight. Steps, which a trainer may report in masses, are merged into
one event and cut to the newest `ROWS_MAX`.
"""

import queue
import threading
from collections import deque

from prime_agent.events import Event, StepsReported
from prime_train.trainers import Progress

ROWS_MAX = 10_000


class ThreadDied(Exception):
    """A thread of the agent has ended by an unexpected exception, so its work is no longer done."""


class Inbox:
    """Queue of events for the agent's loop."""

    def __init__(self) -> None:
        # A plain Queue deadlocks if a signal handler calls put() while it interrupts get() in the same thread.
        self._queue: queue.SimpleQueue[Event | ThreadDied | None] = queue.SimpleQueue()
        self._rows: deque[Progress] = deque(maxlen=ROWS_MAX)
        self._lock = threading.Lock()

    def put(self, event: Event | ThreadDied) -> None:
        self._queue.put(event)

    def put_steps(self, rows: list[Progress]) -> None:
        """Add progress, merged with any that was not fetched yet."""
        with self._lock:
            waiting = bool(self._rows)
            self._rows.extend(rows)
        if rows and not waiting:
            self._queue.put(None)

    def get(self, timeout_s: float) -> Event | None:
        """Return the oldest event, or None after `timeout_s` seconds. Raises ThreadDied if that was put."""
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
        return StepsReported(rows)

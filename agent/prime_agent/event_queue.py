"""Queue of all events, and the threads whose slow work ends in one. Adding one never blocks, from any thread
or signal handler.

Its length is bounded by its sources: each has at most a few events in flight. Steps, which a trainer may
report in masses, are merged into one event and cut to the newest `ROWS_MAX`.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable

from prime_agent.events import Event, StepsReported
from prime_train.errors import ExternalError
from prime_train.trainers.of_spec import Progress

ROWS_MAX = 10_000


class ThreadDied(Exception):
    """A thread of the agent has ended by an unexpected exception, so its work is no longer done."""


class Inbox:
    """Queue of events for the agent's loop."""

    def __init__(self) -> None:
        # A plain Queue deadlocks if a signal handler calls put() while it interrupts get() in the same
        # thread.
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


JOBS_MAX = 64

_log = logging.getLogger(__name__)


class Worker:
    """Thread that does one kind of slow work, one job at a time, and reports each result as an event. `do`
    never blocks: the core requests each job again only after its result, so the queue always has room."""

    def __init__(self, name: str, inbox: Inbox) -> None:
        self._name = name
        self._inbox = inbox
        self._jobs: queue.Queue[tuple[Callable[[], Event | None], Callable[[str], Event | None]]] = (
            queue.Queue(JOBS_MAX)
        )
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def do(self, job: Callable[[], Event | None], failed: Callable[[str], Event | None]) -> None:
        """Queue `job` to run later. Its result is reported as an event, or on failure the result of `failed`,
        called with the reason."""
        self._jobs.put_nowait((job, failed))

    def _run(self) -> None:
        while True:
            job, failed = self._jobs.get()
            event = self._outcome(job, failed)
            if event is not None:
                self._inbox.put(event)

    def _outcome(
        self, job: Callable[[], Event | None], failed: Callable[[str], Event | None]
    ) -> Event | None:
        try:
            return job()
        except ExternalError as error:
            _log.info("%s: %s", self._name, error)
            return failed(str(error))
        except Exception as error:
            # A bug in one upload or scan must not end the training, so it is reported as the failure of that
            # job.
            _log.exception("%s failed", self._name)
            return failed(f"{type(error).__name__}: {error}")

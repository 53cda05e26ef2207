"""A thread that does one kind of slow work, one job at a time, and reports each result as an event."""

import logging
import queue
import threading
from collections.abc import Callable

from prime_agent.event_queue import Inbox
from prime_agent.events import Event
from prime_train.ports import ExternalError

JOBS_MAX = 64

_log = logging.getLogger(__name__)


class Worker:
    """Worker thread. `do` never blocks: the core requests each job again only after its result, so the queue always has room."""

    def __init__(self, name: str, inbox: Inbox) -> None:
        self._name = name
        self._inbox = inbox
        self._jobs: queue.Queue[tuple[Callable[[], Event | None], Callable[[str], Event | None]]] = queue.Queue(JOBS_MAX)
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def do(self, job: Callable[[], Event | None], failed: Callable[[str], Event | None]) -> None:
        """Queue `job` to run later. Its result is reported as an event, or on failure the result of `failed`, called with the reason."""
        self._jobs.put_nowait((job, failed))

    def _run(self) -> None:
        while True:
            job, failed = self._jobs.get()
            event = self._outcome(job, failed)
            if event is not None:
                self._inbox.put(event)

    def _outcome(self, job: Callable[[], Event | None], failed: Callable[[str], Event | None]) -> Event | None:
        try:
            return job()
        except ExternalError as error:
            _log.info("%s: %s", self._name, error)
            return failed(str(error))
        except Exception as error:
            # A bug in one upload or scan must not end the training, so it is reported as the failure of that job.
            _log.exception("%s failed", self._name)
            return failed(f"{type(error).__name__}: {error}")

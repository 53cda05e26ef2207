"""A thread that does one kind of slow work, one job after the other, and says in an event what came of each."""

import logging
import queue
import threading
from collections.abc import Callable

from prime_agent.events import Event
from prime_agent.inbox import Inbox
from prime_train.ports import OutsideError

JOBS_MAX = 64

_log = logging.getLogger(__name__)


class Worker:
    """`do` never waits: the core asks for each thing again only after it was answered, so there is always room."""

    def __init__(self, name: str, inbox: Inbox) -> None:
        self._name = name
        self._inbox = inbox
        self._jobs: queue.Queue[tuple[Callable[[], Event | None], Callable[[str], Event | None]]] = queue.Queue(JOBS_MAX)
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def do(self, job: Callable[[], Event | None], failed: Callable[[str], Event | None]) -> None:
        """Runs `job` later; what it returns is heard, or what `failed` makes of its failure."""
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
        except OutsideError as error:
            _log.info("%s: %s", self._name, error)
            return failed(str(error))
        except Exception as error:
            # Our own bug in one upload or one look must not end the training; it is told as that job's failure.
            _log.exception("%s failed", self._name)
            return failed(f"{type(error).__name__}: {error}")

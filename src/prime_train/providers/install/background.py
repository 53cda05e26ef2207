"""Installs agents on machines in the background: an install takes minutes, and other runs must be handled
meanwhile.
"""

import logging
import threading
import time
from dataclasses import dataclass, field

from prime_train.errors import ExternalError, TemporaryError
from prime_train.providers.port import Installer, SshAddress
from prime_train.runs.wire import Ticket

PUSHES_MAX = 8
PAUSES_S = (2.0, 5.0, 10.0, 20.0)
"""Seconds between the tries of one push: machines are often reported as ready before their SSH server is, and
connections drop.
"""

log = logging.getLogger(__name__)


@dataclass
class _Push:
    done: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    """Set when the push is abandoned, so that it is not retried."""
    error: Exception | None = None
    """The permanent failure, if there was one."""


@dataclass(frozen=True)
class Failure:
    """An attempt whose agent cannot be installed on its machine, and the reason."""

    run_id: str
    attempt: int
    error: Exception


class BackgroundPusher:
    """Wraps an `Installer` so that it runs in background threads. A push in progress is not started again. A
    permanent failure is raised at the next call for the same attempt, once, unless `failure` has returned it
    before. Pushes in progress end with the process; the next process starts them again.
    """

    def __init__(self, pusher: Installer, *, pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._pusher, self._pauses_s = pusher, pauses_s
        self._lock, self._slots = threading.Lock(), threading.Semaphore(PUSHES_MAX)
        self._pushes: dict[tuple[str, str, int], _Push] = {}

    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        attempt = (connection.pod_id, ticket.run, ticket.attempt)
        with self._lock:
            before = self._pushes.get(attempt)
            if before is not None and not before.done.is_set():
                return
            if before is not None and before.error is not None:
                del self._pushes[attempt]
                raise before.error
            push = self._pushes[attempt] = _Push()
            arguments = (push, self._slots, connection, ticket)
        threading.Thread(
            target=self._run, args=arguments, name=f"push-{connection.pod_id}", daemon=True
        ).start()

    def wait(self, limit_s: float | None = None) -> bool:
        """Wait until no push is in progress, or for at most `limit_s` seconds. Return whether all have
        ended.
        """
        end_s = None if limit_s is None else time.monotonic() + limit_s
        with self._lock:
            pushes = list(self._pushes.values())
        return all(
            push.done.wait(None if end_s is None else max(0.0, end_s - time.monotonic())) for push in pushes
        )

    def failure(self) -> Failure | None:
        """Return a permanent failure, each only once, or None if there is none left."""
        with self._lock:
            for (pod_id, run_id, attempt), push in self._pushes.items():
                if push.done.is_set() and push.error is not None:
                    del self._pushes[pod_id, run_id, attempt]
                    return Failure(run_id, attempt, push.error)
        return None

    def leave(self) -> None:
        """Abandon the pushes in progress, for a process that may be suspended from now on: the next call for
        the same attempt starts again. The abandoned push may still continue in parallel, which does no harm:
        see `Installer`.
        """
        with self._lock:
            under_way = {attempt: push for attempt, push in self._pushes.items() if not push.done.is_set()}
            for attempt, push in under_way.items():
                log.warning(
                    "pod %s: its agent was not installed in time; the installation starts again later",
                    attempt[0],
                )
                push.left.set()
                del self._pushes[attempt]
            self._slots = threading.Semaphore(PUSHES_MAX)

    def _run(self, push: _Push, slots: threading.Semaphore, connection: SshAddress, ticket: Ticket) -> None:
        try:
            with slots:
                self._push(push, connection, ticket)
        except ExternalError as error:
            log.warning("pod %s: the agent was not installed: %s", connection.pod_id, error)
            push.error = error
        except Exception as error:  # raised by the next call for this attempt
            log.exception("pod %s: the agent was not installed", connection.pod_id)
            push.error = error
        finally:
            push.done.set()

    def _push(self, push: _Push, connection: SshAddress, ticket: Ticket) -> None:
        for pause_s in (*self._pauses_s, None):
            if push.left.is_set():
                return
            try:
                self._pusher(connection, ticket)
                return
            except TemporaryError as error:
                log.warning("pod %s: the agent could not be installed: %s", connection.pod_id, error)
                if pause_s is not None:
                    push.left.wait(pause_s)

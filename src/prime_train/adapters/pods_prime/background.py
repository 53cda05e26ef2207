"""Bringing agents to machines without waiting for it: an install takes minutes, and other runs must be looked after meanwhile."""

import logging
import threading
from dataclasses import dataclass, field

from prime_train.adapters.pods_prime.connection import Connection, Pusher
from prime_train.core.wire import Ticket
from prime_train.ports import OutsideError, TemporaryError

PUSHES_MAX = 8
PAUSES_S = (2.0, 5.0, 10.0, 20.0)
"""Between tries of one push: a machine is often said to be there before its SSH server is, and connections drop."""

log = logging.getLogger(__name__)


@dataclass
class _Push:
    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    """What went wrong for good."""


class BackgroundPusher:
    """The port `Pusher` around another one. What is under way is left alone; what failed for good is raised at the next call for the same
    attempt, once. A process that ends takes along what is under way: whoever comes next begins it anew."""

    def __init__(self, pusher: Pusher, *, pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._pusher, self._pauses_s = pusher, pauses_s
        self._lock, self._room = threading.Lock(), threading.Semaphore(PUSHES_MAX)
        self._pushes: dict[tuple[str, str, int], _Push] = {}

    def __call__(self, connection: Connection, ticket: Ticket) -> None:
        attempt = (connection.pod_id, ticket.run, ticket.epoch)
        with self._lock:
            before = self._pushes.get(attempt)
            if before is not None and not before.done.is_set():
                return
            if before is not None and before.error is not None:
                del self._pushes[attempt]
                raise before.error
            push = self._pushes[attempt] = _Push()
        threading.Thread(target=self._run, args=(push, connection, ticket), name=f"push-{connection.pod_id}", daemon=True).start()

    def wait(self) -> None:
        """Until nothing is under way."""
        with self._lock:
            pushes = list(self._pushes.values())
        for push in pushes:
            push.done.wait()

    def _run(self, push: _Push, connection: Connection, ticket: Ticket) -> None:
        try:
            with self._room:
                self._push(connection, ticket)
        except OutsideError as error:
            log.warning("pod %s: the agent was not put there: %s", connection.pod_id, error)
            push.error = error
        except Exception as error:  # it is raised where somebody looks after it
            log.exception("pod %s: the agent was not put there", connection.pod_id)
            push.error = error
        finally:
            push.done.set()

    def _push(self, connection: Connection, ticket: Ticket) -> None:
        for pause_s in (*self._pauses_s, None):
            try:
                self._pusher(connection, ticket)
                return
            except TemporaryError as error:
                log.warning("pod %s: the agent could not be put there: %s", connection.pod_id, error)
                if pause_s is not None:
                    threading.Event().wait(pause_s)

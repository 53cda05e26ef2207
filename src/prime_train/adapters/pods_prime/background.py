"""Bringing agents to machines without waiting for it: an install takes minutes, and other runs must be looked after meanwhile."""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from prime_train.adapters.pods_prime.connection import Connection, Pusher
from prime_train.core.wire import Ticket
from prime_train.ports import TemporaryError

PUSHES_MAX = 8
PAUSES_S = (2.0, 5.0, 10.0, 20.0)
"""Between tries of one push: a machine is often said to be there before its SSH server is, and connections drop."""

log = logging.getLogger(__name__)


class BackgroundPusher:
    """The port `Pusher` around another one. What is under way is left alone; what failed for good is raised at the next call for the same
    attempt, once. A process that ends waits for what is under way."""

    def __init__(self, pusher: Pusher, *, pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._pusher, self._pauses_s = pusher, pauses_s
        self._pool = ThreadPoolExecutor(PUSHES_MAX, thread_name_prefix="push")
        self._lock = threading.Lock()
        self._pushes: dict[tuple[str, str, int], Future[bool]] = {}
        """Done: whether the agent is there; or what went wrong."""

    def __call__(self, connection: Connection, ticket: Ticket) -> None:
        attempt = (connection.pod_id, ticket.run, ticket.epoch)
        with self._lock:
            before = self._pushes.get(attempt)
            if before is not None and not before.done():
                return
            if before is None or before.exception() is None:
                self._pushes[attempt] = self._pool.submit(self._push, connection, ticket)
                return
            del self._pushes[attempt]
        before.result()

    def wait(self) -> None:
        """Until nothing is under way."""
        with self._lock:
            pushes = list(self._pushes.values())
        for push in pushes:
            push.exception()

    def _push(self, connection: Connection, ticket: Ticket) -> bool:
        for pause_s in (*self._pauses_s, None):
            try:
                self._pusher(connection, ticket)
                return True
            except TemporaryError as error:
                log.warning("pod %s: the agent could not be put there: %s", connection.pod_id, error)
                if pause_s is not None:
                    threading.Event().wait(pause_s)
        return False

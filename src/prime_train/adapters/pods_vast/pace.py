"""The pace of requests that Vast.ai allows: a least interval between two requests of one kind, by one key from one address.

Requests wait for their turn for a limited time, so that a sweep neither draws refusals nor stands still.
"""

import threading
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

from prime_train.adapters.pods_vast.settings import TITLE
from prime_train.ports import TemporaryError

WAIT_S_MAX = 15.0
"""Longest wait of one request in seconds."""


class Kind(StrEnum):
    """The kinds of requests that have an interval of their own."""

    SEARCH = "search"
    CREATE = "create"
    LIST = "list"
    GET = "get"
    DESTROY = "destroy"
    SSH_KEY = "ssh-key"
    USER = "user"
    CHARGES = "charges"


LEAST_S: Mapping[Kind, float] = {
    Kind.SEARCH: 1.0,
    Kind.CREATE: 4.5,
    Kind.LIST: 1.0,
    Kind.GET: 2.0,
    Kind.DESTROY: 3.0,
    Kind.SSH_KEY: 1.0,
    Kind.USER: 1.0,
    Kind.CHARGES: 1.0,
}
"""The intervals in seconds that Vast.ai's 429 responses name."""


class Pace:
    """The turns of one process; other processes with the same key are not known. `least_s`: the seconds between two requests of each kind.
    `clock` returns monotonic seconds; `pause` waits that many. Thread-safe."""

    def __init__(
        self,
        least_s: Mapping[Kind, float] = LEAST_S,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._least_s, self._clock, self._pause, self._lock = least_s, clock, pause, threading.Lock()
        self._next_s: dict[Kind, float] = {}

    def take_turn(self, kind: Kind, what: str) -> None:
        """Wait for the turn of a request. Raises TemporaryError with the seconds until then if they are too many; nothing is sent then.
        `what` names the request."""
        least_s = self._least_s.get(kind, 0.0)
        with self._lock:
            now_s = self._clock()
            turn_s = max(now_s, self._next_s.get(kind, now_s))
            wait_s = turn_s - now_s
            if wait_s > WAIT_S_MAX:
                raise TemporaryError(
                    f"{what} was not sent: {TITLE} allows only one such request in {least_s:g} s, and others wait for their turn",
                    delay_s=wait_s,
                )
            self._next_s[kind] = turn_s + least_s
        if wait_s > 0:
            self._pause(wait_s)

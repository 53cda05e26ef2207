"""The pace of requests that Lambda Cloud allows: one in a second, and one launch in 12 seconds.

Requests wait for their turn for a limited time, so that a sweep neither draws refusals nor stands still.
"""

import threading
import time
from collections.abc import Callable

from prime_train.adapters.pods_lambda.settings import TITLE
from prime_train.ports import TemporaryError

REQUEST_S = 1.0
LAUNCH_S = 12.0
WAIT_S_MAX = 15.0
"""Longest wait of one request in seconds."""


class Pace:
    """The turns of one process; other processes with the same key are not known. `request_s`, `launch_s`: seconds between two requests, and
    between two launches. `clock` returns monotonic seconds; `pause` waits that many. Thread-safe."""

    def __init__(
        self,
        request_s: float = REQUEST_S,
        launch_s: float = LAUNCH_S,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._request_s, self._launch_s, self._clock, self._pause = request_s, launch_s, clock, pause
        self._lock = threading.Lock()
        self._next_s = self._next_launch_s = clock()

    def take_turn(self, what: str, *, launches: bool = False) -> None:
        """Wait for the turn of a request. Raises TemporaryError with the seconds until then if they are too many; nothing is sent then.
        `what` names the request; `launches`: it rents a machine."""
        with self._lock:
            now_s = self._clock()
            turn_s = max(now_s, self._next_s, self._next_launch_s if launches else now_s)
            wait_s = turn_s - now_s
            if wait_s > WAIT_S_MAX:
                limit = f"one launch in {self._launch_s:g} s" if launches else f"one request in {self._request_s:g} s"
                raise TemporaryError(f"{what} was not sent: {TITLE} allows only {limit}, and others wait for their turn", delay_s=wait_s)
            self._next_s = turn_s + self._request_s
            if launches:
                self._next_launch_s = turn_s + self._launch_s
        if wait_s > 0:
            self._pause(wait_s)

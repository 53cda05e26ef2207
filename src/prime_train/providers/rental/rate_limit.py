"""When requests may be sent: the pause that a provider has asked for by Retry-After in a 429 or 503 response,
applied to all requests of a watcher, and the pace that some allow.

Machines may still be given back during a pause, because they cost money, but only a limited number.
"""

import threading
import time
from collections.abc import Callable, Mapping

from prime_train.errors import TemporaryError
from prime_train.http import HttpResponse

QUIET_S_MAX = 300.0
"""Longest pause in seconds that is kept, so that runs do not go unwatched for longer."""
GIVEN_BACK_MAX = 20
"""Number of machines that may be given back during one pause; further ones wait for its end."""
TOO_MANY = 429
PAUSES = frozenset({TOO_MANY, 503})
"""Statuses whose Retry-After is about all requests."""

WAIT_S_MAX = 15.0
"""Longest wait of one request for its turn in seconds, so that a sweep neither draws refusals nor stands
still.
"""


class RateLimitPause:
    """The current pause. `title` names the provider in messages; `clock` returns monotonic seconds.
    Thread-safe.
    """

    def __init__(self, title: str, clock: Callable[[], float]) -> None:
        self._title, self._clock, self._lock = title, clock, threading.Lock()
        self._until_s = self._end_s = clock()
        self._given_back = 0

    def check(self, method: str, path: str, *, gives_back: bool = False) -> None:
        """Raise TemporaryError with the remaining seconds if a request may not be sent now. To be called
        before every request. `gives_back`: it gives a machine back, as every DELETE does.
        """
        with self._lock:
            left_s = self._until_s - self._clock()
            if left_s <= 0:
                return
            if (gives_back or method == "DELETE") and self._given_back < GIVEN_BACK_MAX:
                self._given_back += 1
                return
        raise TemporaryError(
            f"{method} {path} was not sent: {self._title} has asked for no requests for another {left_s:.0f} "
            "s",
            delay_s=left_s,
        )

    def heed(self, answer: HttpResponse) -> None:
        """Begin or extend the pause if the response asks for one, to at most `QUIET_S_MAX` seconds in total.
        To be called with every response.
        """
        if answer.status in PAUSES:
            self.begin(answer.delay_s)

    def begin(self, delay_s: float) -> None:
        """Begin or extend the pause, for a provider that announces in another way that no request may follow
        for this time.
        """
        if delay_s <= 0:
            return
        with self._lock:
            now_s = self._clock()
            if now_s >= self._until_s:
                self._end_s, self._given_back = now_s + QUIET_S_MAX, 0
            self._until_s = max(self._until_s, min(now_s + delay_s, self._end_s))


class RequestPace:
    """The turns of one process where a provider, called `title`, allows requests of some kind only now and
    then; other processes with the same key are not known. `least_s`: the seconds between two requests of each
    kind. `clock` returns monotonic seconds; `pause` waits that many. Thread-safe."""

    def __init__(
        self,
        title: str,
        least_s: Mapping[str, float],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._title, self._least_s, self._clock, self._pause = title, least_s, clock, pause
        self._lock = threading.Lock()
        self._next_s: dict[str, float] = {}

    def take_turn(self, what: str, *kinds: str) -> None:
        """Wait for the turn of a request that is of all these kinds. Raises TemporaryError with the seconds
        until then if they are too many; nothing is sent then. `what` names the request."""
        with self._lock:
            now_s = self._clock()
            turn_s = max(now_s, *(self._next_s.get(kind, now_s) for kind in kinds))
            wait_s = turn_s - now_s
            if wait_s > WAIT_S_MAX:
                least_s = max(self._least_s.get(kind, 0.0) for kind in kinds)
                limit = f"{self._title} allows only one such request in {least_s:g} s"
                raise TemporaryError(
                    f"{what} was not sent: {limit}, and others wait for their turn", delay_s=wait_s
                )
            self._next_s |= {kind: turn_s + self._least_s.get(kind, 0.0) for kind in kinds}
        if wait_s > 0:
            self._pause(wait_s)

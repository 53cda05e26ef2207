"""How long Prime has asked to be left alone, so that no watcher goes on asking at its own pace.

Machines may be given back all the same, as they cost money; not more often than is harmless.
"""

import threading
from collections.abc import Callable

from prime_train.adapters.http import Answer
from prime_train.ports import TemporaryError

QUIET_S_MAX = 300.0
"""Longer than this nobody is left unwatched, whatever Prime asks for."""
GIVEN_BACK_MAX = 20
"""So many machines may be given back in one time of quiet; the next one waits for its end."""
TOO_MANY = 429


class Quiet:
    """`clock`: seconds that only rise. Safe between threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._until_s = self._end_s = clock()
        self._given_back = 0

    def check(self, method: str, path: str) -> None:
        """To be called before anything is asked. TemporaryError, with the time that is left: it is not to be asked now."""
        with self._lock:
            left_s = self._until_s - self._clock()
            if left_s <= 0:
                return
            if method == "DELETE" and self._given_back < GIVEN_BACK_MAX:
                self._given_back += 1
                return
        raise TemporaryError(f"{method} {path} was not asked: Prime has asked to be left alone, for {left_s:.0f} s more", delay_s=left_s)

    def heed(self, answer: Answer) -> None:
        """To be called with every answer. What comes within the quiet makes it longer, but not beyond `QUIET_S_MAX` in all."""
        if answer.status != TOO_MANY or answer.delay_s <= 0:
            return
        with self._lock:
            now_s = self._clock()
            if now_s >= self._until_s:
                self._end_s, self._given_back = now_s + QUIET_S_MAX, 0
            self._until_s = max(self._until_s, min(now_s + answer.delay_s, self._end_s))

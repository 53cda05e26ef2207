"""Rate limits towards Slack, and the pause after a failure. Nothing sleeps here: a call that comes too early
raises an error.
"""

import contextlib
from collections.abc import Callable, Iterator

from prime_train.errors import TemporaryError

MUTE_S = 30.0
"""Seconds of pause after a failure without a Retry-After."""

Clock = Callable[[], float]


class NotNow(TemporaryError):
    """The request was not sent; retry later."""


class Pace:
    """A token bucket that holds `burst` tokens and refills at `per_s` tokens per second. `clock` returns
    seconds with any origin.
    """

    def __init__(self, per_s: float, burst: int, clock: Clock) -> None:
        self._per_s, self._burst, self._clock = per_s, float(burst), clock
        self._left, self._at_s = self._burst, clock()

    def take(self) -> None:
        """Take a token. Raises NotNow, with the seconds until there is one, if none is left."""
        now_s = self._clock()
        self._left = min(self._burst, self._left + max(0.0, now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1:
            raise NotNow("Slack accepts about one message per second", delay_s=(1 - self._left) / self._per_s)
        self._left -= 1


class FailurePause:
    """Stops sending for a while after a failure, so that an outage of Slack does not delay the watcher at
    every alert.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._shut_until_s = clock, 0.0

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        left_s = self._shut_until_s - self._clock()
        if left_s > 0:
            raise NotNow("no messages are sent to Slack for a while after a failure", delay_s=left_s)
        try:
            yield
        except NotNow:
            raise
        except TemporaryError as error:
            self._shut_until_s = self._clock() + (error.delay_s or MUTE_S)
            raise

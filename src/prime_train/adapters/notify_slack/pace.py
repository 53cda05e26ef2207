"""How fast, and when not at all, another side lets itself be spoken to. Nobody sleeps here: whoever asks too early is told so."""

import contextlib
from collections.abc import Callable, Iterator

from prime_train.ports import TemporaryError

MUTE_S = 30.0
"""After a failure without a word on when to come again."""

Clock = Callable[[], float]


class NotNow(TemporaryError):
    """Nothing was sent, and Slack was not even asked: come again."""


class Pace:
    """A bucket of `burst` tokens, filled again at `per_s` each second. `clock`: seconds, from anywhere."""

    def __init__(self, per_s: float, burst: int, clock: Clock) -> None:
        self._per_s, self._burst, self._clock = per_s, float(burst), clock
        self._left, self._at_s = self._burst, clock()

    def take(self) -> None:
        """A token. Raises NotNow, with the time until there is one."""
        now_s = self._clock()
        self._left = min(self._burst, self._left + max(0.0, now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1:
            raise NotNow("Slack takes about a message a second", delay_s=(1 - self._left) / self._per_s)
        self._left -= 1


class Door:
    """Shut for a while after a failure, so that a Slack that is down does not hold up the watcher alert by alert."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._shut_until_s = clock, 0.0

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        left_s = self._shut_until_s - self._clock()
        if left_s > 0:
            raise NotNow("Slack is left alone after a failure", delay_s=left_s)
        try:
            yield
        except NotNow:
            raise
        except TemporaryError as error:
            self._shut_until_s = self._clock() + (error.delay_s or MUTE_S)
            raise

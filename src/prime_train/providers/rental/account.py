"""What every rental API's account has: something that is asked for only now and then."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from prime_train.errors import ExternalError

T = TypeVar("T")


class Kept(Generic[T]):
    """What `ask` returns, asked for at most every `seconds`. A failure is kept as well. `clock` returns
    monotonic seconds."""

    def __init__(
        self, ask: Callable[[], T], seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._seconds, self._clock = ask, seconds, clock
        self._kept: T | ExternalError | None = None
        self._asked_s = 0.0

    def __call__(self) -> T:
        """Return it. Raises ExternalError as `ask` does."""
        now_s = self._clock()
        if self._kept is None or now_s - self._asked_s >= self._seconds:
            self._asked_s = now_s
            try:
                self._kept = self._ask()
            except ExternalError as error:
                self._kept = error
        if isinstance(self._kept, ExternalError):
            raise self._kept
        return self._kept

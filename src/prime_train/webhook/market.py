"""The answer to readers of the market: what the runs in the store show of machines."""

import threading

from prime_train.market.observations import observations
from prime_train.market.shared import packed
from prime_train.runs.store import Store

KEPT_S = 60
"""How long an answer is given again, in seconds: whoever has the key must not be able to load the store."""


class MarketAnswer:
    """The answer, computed at most once in `KEPT_S` by this process, also if the store does not answer.
    Thread-safe.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._begun_s: int | None = None
        self._body: bytes | None = None

    def body(self, now_s: int) -> bytes | None:
        """Return the answer as JSON; None while the first one is computed, or after that failed. Raises
        ExternalError if the store does not answer.
        """
        with self._lock:
            if self._begun_s is not None and 0 <= now_s - self._begun_s < KEPT_S:
                return self._body
            self._begun_s = now_s
        self._body = packed(observations(self._store.list_runs(), now_s))
        return self._body

"""Searches for offers that are kept for a while: an account may find only so many rows in a day, and a
watcher asks each minute.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prime_train.providers.rental.parsing import readable
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.errors import QuotaUsedUp
from prime_train.providers.vast.models import OfferRow
from prime_train.providers.vast.settings import TITLE

FRESH_S = 300.0
"""Seconds for which what was found is used without asking again."""
RENEWED_S = 60.0
"""Seconds after which it is asked again if a machine was taken meanwhile: others are probably taken as
well.
"""
KEPT_S = 6 * 3600.0
"""Seconds for which it is used when nothing can be searched for until the next day. The price of a machine is
checked when it is rented.
"""
DAY_S = 86_400


@dataclass
class SearchResult:
    """What a search has found. `taken`: the ids of offers that were refused since."""

    asked_s: float
    rows: list[OfferRow]
    taken: set[int] = field(default_factory=set)
    is_outdated: bool = False

    @property
    def left(self) -> list[OfferRow]:
        return [row for row in self.rows if row.id not in self.taken]


class Searches:
    """The searches of one process. `clock` returns monotonic seconds; `wall` the time of day. Thread-safe."""

    def __init__(
        self,
        client: VastClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._clock, self._wall, self._lock = client, clock, wall, threading.Lock()
        self._found: dict[str, SearchResult] = {}
        self._closed_until_s = 0.0

    def rows(self, query: dict[str, object]) -> list[OfferRow]:
        """Return what the query finds, or found a while ago. Raises QuotaUsedUp if the account may search no
        more today, and nothing was found in the last hours.
        """
        key = json.dumps(query, sort_keys=True)
        with self._lock:
            now_s, known = self._clock(), self._found.get(key)
            if known is not None and not self._is_old(known, now_s):
                return known.left
            try:
                known = SearchResult(now_s, self._asked(query))
                self._found = {
                    each: found for each, found in self._found.items() if now_s - found.asked_s <= KEPT_S
                } | {key: known}
            except QuotaUsedUp:
                if known is None or now_s - known.asked_s > KEPT_S:
                    raise
            return known.left

    def taken(self, ask_id: int) -> None:
        """Leave out an offer that was refused."""
        with self._lock:
            for found in self._found.values():
                found.taken.add(ask_id)

    def outdate(self) -> None:
        """Ask again next time, because a machine was rented or given back."""
        with self._lock:
            for found in self._found.values():
                found.is_outdated = True

    def _is_old(self, found: SearchResult, now_s: float) -> bool:
        age_s = now_s - found.asked_s
        return found.is_outdated or age_s >= FRESH_S or (bool(found.taken) and age_s >= RENEWED_S)

    def _asked(self, query: dict[str, object]) -> list[OfferRow]:
        left_s = self._closed_until_s - self._wall()
        if left_s > 0:
            raise QuotaUsedUp(
                f"the account's searches of today at {TITLE} are used up; there are new ones in {left_s:.0f} "
                "s",
                delay_s=left_s,
            )
        try:
            return readable(OfferRow, self._client.search(query), TITLE)
        except QuotaUsedUp:
            now_s = self._wall()
            self._closed_until_s = (now_s // DAY_S + 1) * DAY_S
            raise

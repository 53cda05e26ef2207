"""Detects that the webhook's process stood still: suspended, asleep with its machine, or without CPU time for long.

No heartbeat was received meanwhile, so that time proves nothing against a machine without heartbeats. The watcher beside the webhook
continues at the same moment as the process; it must conclude nothing from silence before the standstill is recorded for all watchers.
"""

import logging
import threading
from collections.abc import Callable

from prime_train.clock import uptime_s
from prime_train.errors import ExternalError
from prime_train.runs.store import Store
from prime_train.watch.observe import hears_since

LOOK_S = 1.0
STILL_S_MAX = 10.0
"""Longest normal gap in seconds between two checks, which run every second. After a longer gap the process counts as having stood still, so
that it received no heartbeats meanwhile."""
STOP_S_MAX = 10.0

log = logging.getLogger(__name__)


class SuspensionDetector:
    """The clock for all decisions beside a webhook, and a thread that detects standstills. `uptime`: seconds that only rise, also while the
    machine sleeps; `clock`: the store's time."""

    def __init__(self, store: Store, clock: Callable[[], int], uptime: Callable[[], float] = uptime_s) -> None:
        self._store, self._clock, self._uptime = store, clock, uptime
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._looked_s = uptime()
        self._is_unreported = True  # no heartbeat was received before the start
        self._thread = threading.Thread(target=self._go_on, name="standstill", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S_MAX)

    def now_s(self) -> int:
        """Return the store's time, after recording since when heartbeats can be received. Raises the store's errors; the caller must
        then decide nothing."""
        self._look()
        return self._clock()

    def _go_on(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self._look()
            except ExternalError as error:
                log.warning("the pause in which no heartbeat could be received could not be stored; retrying: %s", error)

    def _look(self) -> None:
        with self._lock:
            now_s = self._uptime()
            still_s, self._looked_s = now_s - self._looked_s, now_s
            if still_s > STILL_S_MAX:
                log.warning("this process was suspended for %.0f s and received no heartbeats meanwhile", still_s)
                self._is_unreported = True
            if self._is_unreported:
                hears_since(self._store, self._clock())
                self._is_unreported = False

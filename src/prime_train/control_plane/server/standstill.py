"""Notices when the process of the webhook stood still: suspended, asleep with its machine, or without a processor for long.

No heartbeat was heard meanwhile, so that time proves nothing against a machine that was not heard. The watcher beside the webhook goes on
in the very moment in which the process does; it must not conclude anything from silence before that is written down for all watchers.
"""

import logging
import threading
from collections.abc import Callable

from prime_train.clock import uptime_s
from prime_train.control_plane.reconcile import hears_since
from prime_train.ports import OutsideError, Store

LOOK_S = 1.0
STILL_S_MAX = 10.0
"""A process that looks every second and was kept from it for longer has not heard anybody either."""
STOP_S_MAX = 10.0

log = logging.getLogger(__name__)


class Standstill:
    """The clock for whatever decides beside a webhook, and a thread that looks whether the process goes on. `uptime`: seconds that only
    rise, also while the machine sleeps; `clock`: the store's time."""

    def __init__(self, store: Store, clock: Callable[[], int], uptime: Callable[[], float] = uptime_s) -> None:
        self._store, self._clock, self._uptime = store, clock, uptime
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._looked_s = uptime()
        self._is_untold = True  # nobody was heard before the start
        self._thread = threading.Thread(target=self._go_on, name="standstill", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S_MAX)

    def now_s(self) -> int:
        """The store's time, once it is written down since when anybody can be heard. Raises what the store raises: then nothing is to be
        decided."""
        self._look()
        return self._clock()

    def _go_on(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self._look()
            except OutsideError as error:
                log.warning("it could not be written down that nobody was heard for a while; tried again: %s", error)

    def _look(self) -> None:
        with self._lock:
            now_s = self._uptime()
            still_s, self._looked_s = now_s - self._looked_s, now_s
            if still_s > STILL_S_MAX:
                log.warning("this process stood still for %.0f s; nobody was heard meanwhile", still_s)
                self._is_untold = True
            if self._is_untold:
                hears_since(self._store, self._clock())
                self._is_untold = False

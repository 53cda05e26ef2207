"""The watcher: sweeps when a run is due, when a heartbeat has news, and at least once per interval.

It is one thread and does one thing at a time. The check whether anything is due is one indexed query a
second; the sweep itself, which calls the provider, runs only if something is, and never twice within `GAP_S`,
so that a burst of news causes one sweep.
"""

import logging
import threading
import time
from collections.abc import Callable

from prime_train.errors import ExternalError
from prime_train.text.os_errors import in_words
from prime_train.watch.context import Context, SweepResult
from prime_train.watch.sweeps import sweep

INTERVAL_S = 5.0
GAP_S = 0.2
LOOK_S = 1.0
BACKOFF_S_MAX = 30.0
STOP_S_MAX = 10.0

log = logging.getLogger(__name__)


class Watcher:
    """A thread that sweeps. `poke`: set by other threads when there is news. `clock`: replaces the store's.
    `on_sweep` is called after each sweep, for live views and tests.
    """

    def __init__(
        self,
        context: Context,
        poke: threading.Event,
        clock: Callable[[], int] | None = None,
        interval_s: float = INTERVAL_S,
        on_sweep: Callable[[SweepResult], None] | None = None,
    ) -> None:
        if interval_s <= 0:
            raise ValueError(f"the interval between sweeps must be above 0 s, not {interval_s}")
        self._context, self._poke, self._interval_s, self._on_sweep = context, poke, interval_s, on_sweep
        self._clock = clock or context.store.now_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self.run, name="watcher", daemon=True)
        self.failures = 0
        """Number of failed sweeps since the start."""
        self._failed_in_a_row = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current sweep. If the sweep takes too long, return without waiting for it: it ends
        with the process, and what it has saved is complete.
        """
        self._stopping.set()
        self._poke.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S_MAX)
            if self._thread.is_alive():
                log.warning("the running sweep did not end within %.0f s", STOP_S_MAX)

    def run(self) -> None:
        """Sweep until stopped."""
        while not self._stopping.is_set():
            self._poke.clear()
            self._sweep()
            self._rest()

    def _sweep(self) -> None:
        try:
            done = sweep(self._context, clock=self._clock)
            self._failed_in_a_row = 0
            if self._on_sweep is not None:
                self._on_sweep(done)
        except ExternalError as error:
            self._fail("the sweep was interrupted: %s", error)
        except OSError as error:
            self._fail("the sweep was interrupted: %s", in_words(error))
        except (
            Exception
        ) as error:  # whatever the error, the next sweep may work, and no other thread looks after the runs
            self._fail("the sweep failed: %s", error, exc_info=error)

    def _fail(self, message: str, error: Exception | str, *, exc_info: Exception | None = None) -> None:
        self.failures += 1
        self._failed_in_a_row += 1
        log.error(message, error, exc_info=exc_info)

    def _rest(self) -> None:
        """Wait until there is work. After a failure only news shortens the wait, because the failed run is
        still due and would otherwise be tried again without a pause.
        """
        end_s = time.monotonic() + self._rest_s()
        self._stopping.wait(GAP_S)
        while not self._stopping.is_set():
            left_s = end_s - time.monotonic()
            if (
                left_s <= 0
                or self._poke.wait(min(LOOK_S, left_s))
                or (not self._failed_in_a_row and self._is_due())
            ):
                return

    def _rest_s(self) -> float:
        doublings = min(self._failed_in_a_row, 10)
        return max(self._interval_s, min(BACKOFF_S_MAX, self._interval_s * 2.0 ** max(0, doublings - 1)))

    def _is_due(self) -> bool:
        try:
            now_s, left = self._clock(), self._context.elsewhere.runs
            # These stay due: nothing can be decided about them, or not here.
            set_aside = self._context.unreadable.run_ids.union(
                run_id for run_id, until_s in left.items() if until_s > now_s
            )
            return not set_aside.issuperset(self._context.store.due(now_s, 1 + len(set_aside)))
        except Exception:
            return True  # the sweep meets the same error, and reports it

"""Which step the trainer had reached at a time, for checkpoints whose names have no number.

A line arrives a moment after it was printed, and a file's time is a moment behind the clock. So what arrives
within half a step after a file was closed counts as printed before, and where the trainer saves every so many
steps, the nearest such step within one is meant.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import median

READINGS_MAX = 10_000
LATE_S_MAX = 0.5
RECENT = 20
"""Number of readings from which the duration of a step is estimated."""


class ReachedSteps:
    """The steps of one attempt with the times of this machine's clock at which they were reported;
    thread-safe. `start`: the step from which it resumes; `every_steps`: the steps between two saves, if
    known.
    """

    def __init__(self, now_s: Callable[[], float], *, start: int = 0, every_steps: int | None = None) -> None:
        self._now_s, self._start, self._every = now_s, start, every_steps
        self._lock = threading.Lock()
        self._times: list[float] = []
        self._steps: list[int] = []

    def restart(self, step: int) -> None:
        """Begin at another step, because an older checkpoint was restored."""
        with self._lock:
            self._start = step

    def add(self, steps: Iterable[int], at_s: float | None = None) -> None:
        """Record steps that were read together; `at_s`: when the last one was written, by default now."""
        steps = list(steps)
        now_s = self._now_s()
        at_s = now_s if at_s is None else min(at_s, now_s)
        with self._lock:
            since_s = self._times[-1] if self._times else at_s
            for place, step in enumerate(steps, start=1):
                self._times.append(max(since_s, since_s + (at_s - since_s) * place / len(steps)))
                self._steps.append(step)
            del self._times[:-READINGS_MAX], self._steps[:-READINGS_MAX]

    def at(self, at_s: float) -> int:
        """Return the step that had been reached at this time."""
        with self._lock:
            count = bisect_right(self._times, at_s + min(LATE_S_MAX, self._step_s() / 2))
            reached = max([self._start, *self._steps[:count][-RECENT:]])
        nearest = self._every * round(reached / self._every) if self._every else reached
        return nearest if abs(nearest - reached) <= 1 and nearest > 0 else reached

    def _step_s(self) -> float:
        """Return the usual time between two readings in seconds; 0 before there are some."""
        waits = [later - earlier for earlier, later in pairwise(self._times[-RECENT:])]
        return median(waits) if waits else 0.0

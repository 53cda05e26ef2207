"""What lies outside of the store takes long to look at: a machine is logged in to, a provider asked. Pages do not wait for it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

from prime_train.ports import RunRecord
from prime_train.reports.pages import Outside

THREADS = 2
KEPT_S = 5.0
REST_TIMES = 20
"""A look that takes long is made as seldom as it takes: a machine that is logged in to has something else to do."""
AT_REST_S = 300.0
"""Of a run to which nothing happens any more."""
FIRST_WAIT_S = 2.0
AT_ONCE_S = 12.0
"""Well below the time that a function has for a request."""
RUNS_MAX = 64

Look = Callable[[RunRecord], Outside]
T = TypeVar("T")


class Looking(Protocol):
    def seen(self, held: RunRecord, *, wait_s: float = FIRST_WAIT_S) -> Outside | None:
        """Return what was seen of the run outside of the store; None if that is not known yet. Waits up to `wait_s` for a first look."""

    def turn(self, run_id: str) -> int:
        """Return a number that changes when `seen` does."""


class LookAtOnce(Looking):
    """Looks while somebody waits, for a process that stands still between two requests. What takes longer than `limit_s` is not shown."""

    def __init__(self, look: Look, *, limit_s: float = AT_ONCE_S) -> None:
        self._look, self._limit_s = look, limit_s

    def seen(self, held: RunRecord, *, wait_s: float = FIRST_WAIT_S) -> Outside | None:
        looking = in_thread(lambda: self._look(held))
        return looking.result() if looking in wait([looking], self._limit_s).done else None

    def turn(self, run_id: str) -> int:
        return 0


@dataclass
class _Kept:
    """`begun_s`: when the newest look began, by a clock that only rises; `took_s`: how long the last one took, in seconds."""

    begun_s: float
    took_s: float
    looking: "Future[tuple[Outside, float]]"
    outside: Outside | None = None
    turn: int = 0


class LookAgain(Looking):
    """Looks in threads of its own, again whenever somebody asks and what is known is older than `kept_s`. A thread that waits for a machine
    does not keep the process from ending."""

    def __init__(self, look: Look, *, kept_s: float = KEPT_S) -> None:
        self._look, self._kept_s = look, kept_s
        self._free = threading.Semaphore(THREADS)
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def seen(self, held: RunRecord, *, wait_s: float = FIRST_WAIT_S) -> Outside | None:
        with self._lock:
            kept = self._current(held)
        if kept.outside is None:
            wait([kept.looking], wait_s)
        with self._lock:
            self._take(kept)
            return kept.outside

    def turn(self, run_id: str) -> int:
        with self._lock:
            kept = self._kept.get(run_id)
            if kept is None:
                return 0
            self._take(kept)
            return kept.turn

    def _current(self, held: RunRecord) -> _Kept:
        """With a look under way if one is due."""
        run_id, now_s = held.run.run_id, time.monotonic()
        kept = self._kept.get(run_id)
        if kept is None:
            self._make_room()
            kept = self._kept[run_id] = _Kept(now_s, 0.0, self._begin(held))
        self._take(kept)
        old_s = AT_REST_S if held.run.is_at_rest else max(self._kept_s, REST_TIMES * kept.took_s)
        if kept.looking.done() and now_s - kept.begun_s >= old_s:
            kept.begun_s, kept.looking = now_s, self._begin(held)
        return kept

    def _begin(self, held: RunRecord) -> "Future[tuple[Outside, float]]":
        return in_thread(lambda: self._timed(held))

    def _timed(self, held: RunRecord) -> tuple[Outside, float]:
        with self._free:
            begun_s = time.monotonic()
            return self._look(held), time.monotonic() - begun_s

    def _take(self, kept: _Kept) -> None:
        """Takes over what a look that is done has seen. What it raised is a bug, and is raised here."""
        if not kept.looking.done():
            return
        outside, kept.took_s = kept.looking.result()
        if outside != kept.outside:
            kept.outside, kept.turn = outside, kept.turn + 1

    def _make_room(self) -> None:
        done = [run_id for run_id, kept in self._kept.items() if kept.looking.done()]
        for run_id in sorted(done, key=lambda run_id: self._kept[run_id].begun_s)[: max(0, len(self._kept) - RUNS_MAX + 1)]:
            del self._kept[run_id]


def in_thread(does: Callable[[], T]) -> "Future[T]":
    """Begin it in a thread that, unlike those of an executor, does not keep the process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(does())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="looking", daemon=True).start()
    return future

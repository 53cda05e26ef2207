"""What lies outside of the store takes long to look at: a machine is logged in to, a provider asked. Pages do not wait for it."""

import logging
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
"""Seconds after which a look is repeated, at the earliest."""
REST_TIMES = 20
"""A look is repeated after this many times as long as it took, at the earliest: a machine that is logged in to has other work."""
AT_REST_S = 300.0
"""The same for a run at rest that was already at rest when it was looked at."""
FIRST_WAIT_S = 2.0
AT_ONCE_S = 12.0
"""Well below the time that a function has for a request."""
RUNS_MAX = 64

log = logging.getLogger(__name__)

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
        looking = in_thread(lambda: _looked(self._look, held))
        return looking.result() if looking in wait([looking], self._limit_s).done else None

    def turn(self, run_id: str) -> int:
        return 0


@dataclass
class _Kept:
    """`begun_s`: when the newest look began, by a clock that only rises; `version`: of the run, then; `took_s`: how long the last one
    took, in seconds."""

    begun_s: float
    version: int
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
            kept = self._kept[run_id] = _Kept(now_s, held.run.version, 0.0, self._begin(held))
        self._take(kept)
        is_final = held.run.is_at_rest and kept.version == held.run.version
        old_s = AT_REST_S if is_final else max(self._kept_s, REST_TIMES * kept.took_s)
        if kept.looking.done() and now_s - kept.begun_s >= old_s:
            kept.begun_s, kept.version, kept.looking = now_s, held.run.version, self._begin(held)
        return kept

    def _begin(self, held: RunRecord) -> "Future[tuple[Outside, float]]":
        return in_thread(lambda: self._timed(held))

    def _timed(self, held: RunRecord) -> tuple[Outside, float]:
        with self._free:
            begun_s = time.monotonic()
            return _looked(self._look, held), time.monotonic() - begun_s

    def _take(self, kept: _Kept) -> None:
        """Takes over what a look that is done has seen."""
        if not kept.looking.done():
            return
        outside, kept.took_s = kept.looking.result()
        if outside != kept.outside:
            kept.outside, kept.turn = outside, kept.turn + 1

    def _make_room(self) -> None:
        done = [run_id for run_id, kept in self._kept.items() if kept.looking.done()]
        for run_id in sorted(done, key=lambda run_id: self._kept[run_id].begun_s)[: max(0, len(self._kept) - RUNS_MAX + 1)]:
            del self._kept[run_id]


def _looked(look: Look, held: RunRecord) -> Outside:
    """Return what was seen. A bug that one run meets must not take away its page for good: it is logged, and the page says so."""
    try:
        return look(held)
    except Exception:
        log.exception("run %s could not be looked at", held.run.run_id)
        return Outside(notes=("bucket, machine and provider: a mistake of the control plane's; see its log",))


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

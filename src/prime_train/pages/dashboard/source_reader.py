"""Reads what a page shows from outside the store. That takes long, because it logs in to machines and queries
providers, so pages do not wait for it.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

from prime_train.pages.run_page import RunSources
from prime_train.runs.store import RunRecord

THREADS = 2
KEPT_S = 5.0
"""Minimum seconds between two reads for the same run."""
REST_TIMES = 20
"""The pause before the next read, as a multiple of the time that the last read took, so that reads hardly
load the machine.
"""
AT_REST_S = 300.0
"""Minimum seconds between two reads for a run at rest that has not changed since the last read."""
FIRST_WAIT_S = 2.0
AT_ONCE_S = 12.0
"""Limit in seconds for a read during a request; well below the time limit of a Lambda function's request."""
RUNS_MAX = 64

log = logging.getLogger(__name__)

Look = Callable[[RunRecord], RunSources]
T = TypeVar("T")


class SourceReader(Protocol):
    def seen(self, record: RunRecord, *, wait_s: float = FIRST_WAIT_S) -> RunSources | None:
        """Return the latest data on the run from outside the store; None if there is none yet. Waits up to
        `wait_s` seconds for the first read.
        """

    def turn(self, run_id: str) -> int:
        """Return a number that changes whenever `seen` would return something else than before."""


class ReadPerRequest(SourceReader):
    """Reads during the request, for a process that is suspended between two requests. A read that takes
    longer than `limit_s` is not shown.
    """

    def __init__(self, look: Look, *, limit_s: float = AT_ONCE_S) -> None:
        self._look, self._limit_s = look, limit_s

    def seen(self, record: RunRecord, *, wait_s: float = FIRST_WAIT_S) -> RunSources | None:
        future = in_thread(lambda: _looked(self._look, record))
        return future.result() if future in wait([future], self._limit_s).done else None

    def turn(self, run_id: str) -> int:
        return 0


@dataclass
class _Read:
    """The state of the reads for one run. `begun_s`: start of the newest read, in monotonic seconds;
    `version`: the run's version at that moment; `took_s`: duration of the last completed read, in seconds.
    """

    begun_s: float
    version: int
    took_s: float
    future: "Future[tuple[RunSources, float]]"
    sources: RunSources | None = None
    turn: int = 0


class BackgroundReader(SourceReader):
    """Reads in background threads whenever data is requested that is older than `kept_s`. A thread that waits
    for a machine does not keep the process from ending.
    """

    def __init__(self, look: Look, *, kept_s: float = KEPT_S) -> None:
        self._look, self._kept_s = look, kept_s
        self._free = threading.Semaphore(THREADS)
        self._lock = threading.Lock()
        self._reads: dict[str, _Read] = {}

    def seen(self, record: RunRecord, *, wait_s: float = FIRST_WAIT_S) -> RunSources | None:
        with self._lock:
            read = self._current(record)
        if read.sources is None:
            wait([read.future], wait_s)
        with self._lock:
            self._take(read)
            return read.sources

    def turn(self, run_id: str) -> int:
        with self._lock:
            read = self._reads.get(run_id)
            if read is None:
                return 0
            self._take(read)
            return read.turn

    def _current(self, record: RunRecord) -> _Read:
        """Return the state for this run, after starting a new read if one is due."""
        run_id, now_s = record.run.run_id, time.monotonic()
        read = self._reads.get(run_id)
        if read is None:
            self._evict()
            read = self._reads[run_id] = _Read(now_s, record.run.version, 0.0, self._begin(record))
        self._take(read)
        is_final = record.run.is_at_rest and read.version == record.run.version
        old_s = AT_REST_S if is_final else max(self._kept_s, REST_TIMES * read.took_s)
        if read.future.done() and now_s - read.begun_s >= old_s:
            read.begun_s, read.version, read.future = now_s, record.run.version, self._begin(record)
        return read

    def _begin(self, record: RunRecord) -> "Future[tuple[RunSources, float]]":
        return in_thread(lambda: self._timed(record))

    def _timed(self, record: RunRecord) -> tuple[RunSources, float]:
        with self._free:
            begun_s = time.monotonic()
            return _looked(self._look, record), time.monotonic() - begun_s

    def _take(self, read: _Read) -> None:
        """Store the result of the newest read if it has ended."""
        if not read.future.done():
            return
        sources, read.took_s = read.future.result()
        if sources != read.sources:
            read.sources, read.turn = sources, read.turn + 1

    def _evict(self) -> None:
        done = [run_id for run_id, read in self._reads.items() if read.future.done()]
        for run_id in sorted(done, key=lambda run_id: self._reads[run_id].begun_s)[
            : max(0, len(self._reads) - RUNS_MAX + 1)
        ]:
            del self._reads[run_id]


def _looked(look: Look, record: RunRecord) -> RunSources:
    """Return the data from outside the store. An exception, which would be a bug, is logged and replaced by a
    note on the page, so that the page still works.
    """
    try:
        return look(record)
    except Exception:
        log.exception("run %s could not be read", record.run.run_id)
        return RunSources(notes=("bucket, machine and provider: a bug in the control plane; see its log",))


def in_thread(does: Callable[[], T]) -> "Future[T]":
    """Run `does` in a new thread and return its future. Unlike the threads of an executor, it does not keep
    the process from ending.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(does())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="looking", daemon=True).start()
    return future

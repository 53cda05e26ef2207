"""Parallel execution of the same work on many items by a bounded number of threads."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

WORKERS = 12
"""Number of threads: enough for 10 Gbit/s at 100 MB/s for each connection; each thread holds a chunk or two
in memory.
"""

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T], *, workers: int = WORKERS) -> list[R]:
    """Return `work(item)` of every item, in order. After a failure or an interrupt no new item is started,
    and the exception is raised.
    """
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        failures = [failure for future in done if not future.cancelled() and (failure := future.exception())]
        if failures:
            pool.shutdown(wait=True, cancel_futures=True)
            raise failures[0]
        return [future.result() for future in futures]


class Once:
    """Deduplication of work that several threads request at once, such as sending the same content: one does
    it, the others wait.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[None]] = {}

    def do(self, name: str, work: Callable[[], None]) -> None:
        """Return when some thread has done `work` for this name; raise what it raised."""
        with self._lock:
            others = self._under_way.get(name)
            mine: Future[None] = Future()
            if others is None:
                self._under_way[name] = mine
        if others is not None:
            others.result()
            return
        try:
            work()
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(None)
        finally:
            with self._lock:
                del self._under_way[name]

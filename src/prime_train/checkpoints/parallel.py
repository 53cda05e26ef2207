"""The same work for many things at once, by a bounded number of threads."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

WORKERS = 12
"""Enough for 10 Gbit/s where one connection brings 100 MB/s; each holds a chunk or two in memory."""

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T], *, workers: int = WORKERS) -> list[R]:
    """`work` of every item, in their order. After the first failure, or an interrupt, nothing new is begun; what it raised is raised."""
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
    """Work that several threads may want at the same time, such as sending the same content: one does it, the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[None]] = {}

    def do(self, name: str, work: Callable[[], None]) -> None:
        """Returns when `work` has been done for this name by somebody; raises what it raised."""
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

"""Runs obstore's asynchronous calls for threads that have no event loop.

A thread that waits in obstore itself is woken for every packet that arrives: 90,000 times per gigabyte, which
took a third of the CPU of a download (`tests/benchmarks/transfer/transfer.py`). Here the library's own
threads assemble the packets; the event loop is notified once the object is complete, and the calling thread
is woken once.
"""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_MAKING = threading.Lock()


def await_here(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, or raise its exception. `work` runs in the one event loop of this process,
    so it must only await and never block.
    """
    with _MAKING:
        loop = _loop(os.getpid())
    return asyncio.run_coroutine_threadsafe(work, loop).result()


@functools.cache
def _loop(pid: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of process `pid`, because a fork does not copy threads. Its thread is a daemon,
    since no work outlives a call.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"bucket-loop-{pid}", daemon=True).start()
    return loop

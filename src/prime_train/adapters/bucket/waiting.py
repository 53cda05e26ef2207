"""Waiting for the library's asynchronous calls, in threads that know nothing of it.

A thread that waits in obstore itself is woken for every packet that arrives: 90,000 times a gigabyte, and a third of the CPU of a download
was spent on that (`tests/benchmarks/transfer.py`). Here the packets are put together in the library's own threads; the loop hears of the
whole, and the thread that asked is woken once.
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
    """What `work` returns or raises; it runs in the one loop of this process. The loop has to stay free: `work` may do nothing but wait."""
    with _MAKING:
        loop = _loop(os.getpid())
    return asyncio.run_coroutine_threadsafe(work, loop).result()


@functools.cache
def _loop(pid: int) -> asyncio.AbstractEventLoop:
    """By process, for a fork takes no threads along. It ends with the process: nobody waits for it, as nothing of it outlives a call."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"bucket-loop-{pid}", daemon=True).start()
    return loop

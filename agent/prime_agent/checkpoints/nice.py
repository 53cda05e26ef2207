"""Taking second place: threads that move checkpoints run when the trainer leaves a core free."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

NICE = 15
"""Beside a trainer that uses every core, such a thread gets about one part in thirty of one; its disk reads are ranked likewise."""

TASKS = Path("/proc/self/task")
_LIBRARY_THREADS = ("tokio", "rayon")

_log = logging.getLogger(__name__)


def step_back() -> None:
    """This thread takes second place, and with it the threads it starts. Anyone may do so; elsewhere than on Linux nothing happens."""
    if sys.platform == "linux":
        _renice(threading.get_native_id())


def step_back_library() -> None:
    """As `step_back`, for the threads in which obstore sends and encrypts."""
    if sys.platform == "linux":
        for task in _tasks():
            _renice(task)


def _tasks() -> Iterator[int]:
    for entry in TASKS.iterdir():
        with suppress(OSError):  # threads come and go
            if (entry / "comm").read_text().startswith(_LIBRARY_THREADS):
                yield int(entry.name)


def _renice(thread: int) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, thread, NICE)
    except OSError as error:
        _log.debug("thread %d keeps its priority: %s", thread, error)

"""Low priority for the threads that move checkpoints, so that they run when the trainer leaves a core
idle.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

NICE = 15
"""Nice value of the threads that move checkpoints. If the trainer uses every core, such a thread gets about a
thirtieth of a core; its disk reads have a correspondingly low priority.
"""

TASKS = Path("/proc/self/task")
_LIBRARY_THREADS = ("tokio", "rayon")

_log = logging.getLogger(__name__)


def step_back() -> None:
    """Lower the priority of this thread and the threads it starts. No privileges are needed; outside Linux
    nothing happens.
    """
    if sys.platform == "linux":
        _renice(threading.get_native_id())


def step_back_library() -> None:
    """Lower the priority of the threads in which obstore sends and encrypts, as `step_back` does for the
    calling thread.
    """
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

"""Which files the trainer's processes have open for writing, on Linux."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prime_agent.processes import marked

Identity = tuple[int, int]
"""Device and inode of a file."""
SEARCH_S = 10.0
"""Seconds after which processes are looked for that no known one has started."""


def written_by(
    owner: str, monotonic_s: Callable[[], float] = time.monotonic
) -> Callable[[], frozenset[Identity] | None]:
    """Return a function that returns the regular files which processes with the mark `owner` have open for
    writing. It returns None if that is unknown: on other systems, without such a process, or if one cannot be
    looked into.
    """
    known: set[int] = set()
    searched_s = -SEARCH_S

    def written() -> frozenset[Identity] | None:
        nonlocal known, searched_s
        if sys.platform != "linux":
            return None
        known = _with_children(known)
        # All processes of the machine are looked through only now and then, because that takes long.
        if not known or monotonic_s() - searched_s >= SEARCH_S:
            known, searched_s = {process.pid for process in marked(f"{owner}/")}, monotonic_s()
        found: set[Identity] = set()
        for pid in known:
            try:
                found |= _written_by(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except OSError:
                if not _is_zombie(pid):
                    return None
        return frozenset(found) if known else None

    return written


def _with_children(pids: Iterable[int]) -> set[int]:
    """Return those of the processes that exist, with all that they have started."""
    found: set[int] = set()
    left = list(pids)
    while left:
        pid = left.pop()
        if pid in found:
            continue
        with suppress(OSError):
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names alone
            found.add(pid)
            for thread in threads:
                left += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _written_by(pid: int) -> set[Identity]:
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names alone
        with suppress(FileNotFoundError, ProcessLookupError):
            status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116 - not a path to be handled
            if stat.S_ISREG(status.st_mode) and _is_for_writing(
                Path(f"/proc/{pid}/fdinfo/{name}").read_text()
            ):
                found.add((status.st_dev, status.st_ino))
    return found


def _is_zombie(pid: int) -> bool:
    """Return whether the process has ended and waits for its parent, so that it has no file open, and none of
    its folders can be read.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _is_for_writing(info: str) -> bool:
    flags = next((int(line.split()[1], 8) for line in info.splitlines() if line.startswith("flags:")), 0)
    return flags & os.O_ACCMODE != os.O_RDONLY

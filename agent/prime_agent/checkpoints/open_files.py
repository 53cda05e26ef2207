"""Which files the trainer's processes have open for writing, on Linux."""

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from prime_agent.processes import marked

Identity = tuple[int, int]
"""Device and inode of a file."""


def written_by(owner: str) -> Callable[[], frozenset[Identity] | None]:
    """Return a function that returns the regular files which processes with the mark `owner` have open for writing. It returns None if
    that is unknown: on other systems, without such a process, or if one cannot be looked into."""

    def written() -> frozenset[Identity] | None:
        if sys.platform != "linux":
            return None
        found: set[Identity] = set()
        processes = list(marked(f"{owner}/"))
        for process in processes:
            try:
                found |= _written_by(process.pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except OSError:
                return None
        return frozenset(found) if processes else None

    return written


def _written_by(pid: int) -> set[Identity]:
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names alone
        with suppress(FileNotFoundError, ProcessLookupError):
            status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116 - not a path to be handled
            if stat.S_ISREG(status.st_mode) and _is_for_writing(Path(f"/proc/{pid}/fdinfo/{name}").read_text()):
                found.add((status.st_dev, status.st_ino))
    return found


def _is_for_writing(info: str) -> bool:
    flags = next((int(line.split()[1], 8) for line in info.splitlines() if line.startswith("flags:")), 0)
    return flags & os.O_ACCMODE != os.O_RDONLY

"""The number of connections that this process may hold open: its limit of open files, less what it needs
itself.
"""

import logging
import resource
from dataclasses import dataclass

CONNECTIONS_MAX = 4096
"""Connections at the same time. More would let more strangers connect before anybody has to wait; but whoever
comes in a flood of requests waits for those of all connections that were accepted before, and an agent waits
for 10 s.
"""
FILES_WANTED = 65_536
"""The highest limit of open files to set. A higher one has no use, and some systems report a limit that they
then refuse.
"""
OWN_FILES = 256
"""Number of descriptors kept for the store, the provider, the canary, agents being installed on machines, and
connections accepted a moment ago.
"""
CONNECTIONS_MIN = 64
BACKLOG_MAX = 2048

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of simultaneous connections: `connections` that are accepted, and `backlog` that wait to be."""

    connections: int
    backlog: int


def raise_file_limit() -> None:
    """Raise the soft limit of open files towards the hard limit. Only for a program's main process, because
    child processes inherit the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError) as error:
        log.warning("the limit of open files stays at %d: %s", soft, error)


def connection_limits() -> ConnectionLimits:
    """Return the limits of connections from the limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = CONNECTIONS_MAX + OWN_FILES if soft == resource.RLIM_INFINITY else soft
    connections = max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, files - max(OWN_FILES, files // 4)))
    return ConnectionLimits(connections, min(BACKLOG_MAX, connections // 2))

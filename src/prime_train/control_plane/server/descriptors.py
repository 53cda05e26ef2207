"""How many connections this process may hold open: as many as it may open files, less what it needs itself."""

import logging
import resource
from dataclasses import dataclass

CONNECTIONS_MAX = 8192
FILES_WANTED = 65_536
"""More than that helps nobody, and some systems name a limit that they do not take."""
OWN_FILES = 256
"""For the store, the provider, the canary, agents that are being brought to machines, and connections that were accepted a moment ago."""
CONNECTIONS_MIN = 64
BACKLOG_MAX = 2048

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Room:
    """Connections at once: `connections` of all, of which `strangers` have signed nothing yet; and `backlog`, not accepted yet."""

    connections: int
    strangers: int
    backlog: int


def raise_file_limit() -> None:
    """Lets this process open as many files as it may at all. For a whole program: what it starts inherits the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError) as error:
        log.warning("the limit of open files stays at %d: %s", soft, error)


def room() -> Room:
    """As the limit of open files has it now. A quarter of all connections is kept back for those that have signed something."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = CONNECTIONS_MAX + OWN_FILES if soft == resource.RLIM_INFINITY else soft
    connections = max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, files - max(OWN_FILES, files // 4)))
    return Room(connections, connections * 3 // 4, min(BACKLOG_MAX, connections // 2))

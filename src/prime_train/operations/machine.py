"""The machine that a run is on now, where that is reached by SSH, and what lies there."""

import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prime_train.ports import TemporaryError

if TYPE_CHECKING:
    from prime_train.adapters.ssh import Shell
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import Run

NO_FILE = 76
FETCH_S_MAX = 120.0
GZIP = 31
"""How zlib is told of that format."""


@dataclass(frozen=True)
class Machine:
    """A connection to it; `attempt` is the run's, by the name of the agent's folder there."""

    shell: "Shell"
    attempt: str

    @property
    def disk(self) -> str:
        """For a shell there: the folder in which the agent works."""
        return f'"$(cat "$HOME/.prime-train/{self.attempt}/disk")"'


def is_elsewhere(run: "Run") -> bool:
    """Whether it has a rented machine now; ids of pods on this one bear no provider's name."""
    from prime_train.adapters.pods_by_provider import LOCAL, provider_of

    attempt = run.current_attempt
    if attempt is None or attempt.pod_id is None or attempt.fenced_s is not None or run.is_over:
        return False
    return provider_of(attempt.pod_id)[0] != LOCAL


def why_unknown(home: "Home", run: "Run") -> str:
    """Why a rented machine cannot be asked after from here; "" where it can."""
    from prime_train.adapters.pods_by_provider import ADVICE, provider_of

    if not is_elsewhere(run) or run.current_attempt is None or run.current_attempt.pod_id is None:
        return ""
    provider = provider_of(run.current_attempt.pod_id)[0]
    if provider in home.pods().names:
        return ""
    return (
        f"the machine of {run.run_id} is rented from {provider}, which is not set up here; {ADVICE.get(provider, 'look at its settings')}"
    )


def is_watched_elsewhere(home: "Home", run: "Run") -> bool:
    """Whether somebody else has brought the agent to the run's machine, which has been heard of since: then the key is pinned that it shows
    at the first login from here."""
    return bool(home.elsewhere or home.table_url) and run.current_attempt is not None and run.current_attempt.first_heartbeat_s is not None


@contextmanager
def reached(home: "Home", run: "Run") -> "Iterator[Machine | None]":
    """None: it has no machine, or none that is reached by SSH, or nobody has brought the agent there yet; then it is not logged in to.

    TemporaryError: it cannot be reached now. PermanentError: it is not the machine that it was.
    """
    reach = home.reach(run) if is_elsewhere(run) else None
    if reach is None:
        yield None
        return
    from prime_train.adapters.ssh import KnownHosts, connect, login_key

    hosts = KnownHosts(reach.known_hosts)
    if not hosts.knows(reach.connection.pod_id) and not is_watched_elsewhere(home, run):
        yield None
        return
    with connect(reach.connection, login_key(reach.key_file.parent, home.master()), hosts) as shell:
        yield Machine(shell, f"{run.run_id}-e{run.attempt}")


def file_of(machine: Machine, path: str, *, bytes_max: int) -> bytes:
    """The end of a file below the agent's folder; empty where there is none. It comes compressed. TemporaryError: it did not come whole."""
    file = shlex.quote(path)
    command = f"cd {machine.disk} 2>/dev/null && [ -f {file} ] && tail -c {bytes_max} {file} | gzip -1 || exit {NO_FILE}"
    fetched = machine.shell.fetch(command, bytes_max=bytes_max, limit_s=FETCH_S_MAX)
    try:
        return zlib.decompressobj(wbits=GZIP).decompress(fetched.data, bytes_max) if fetched.code == 0 else b""
    except zlib.error as error:
        raise TemporaryError(f"{machine.shell.where}: {path} did not come whole") from error

"""Access to a run's current machine over SSH, and to files on it."""

import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.adapters.pods_by_provider import provider_of
from prime_train.control_plane.wiring.home import Home
from prime_train.core.advice import Advice, Call, Operation
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.registry.providers import LOCAL, advice_for
from prime_train.core.run import Run
from prime_train.ports import TemporaryError

if TYPE_CHECKING:
    from prime_train.adapters.ssh.shell import Shell
    from prime_train.control_plane.wiring.providers import SshAccess

NO_FILE = 76
FETCH_S_MAX = 120.0
GZIP = 31
"""zlib's `wbits` value for the gzip format."""


@dataclass(frozen=True)
class Machine:
    """A connection to a run's machine. `attempt`: the name of the agent's folder on it."""

    shell: "Shell"
    attempt: str

    @property
    def disk(self) -> str:
        """A shell expression, evaluated on the machine, for the folder in which the agent works."""
        return f'"$(cat "$HOME/.prime-train/{self.attempt}/disk")"'


def is_elsewhere(run: Run) -> bool:
    """Return whether the run has a rented machine now. Ids of pods on this machine have no provider's name in them."""
    attempt = run.current_attempt
    if attempt is None or attempt.pod_id is None or attempt.fenced_s is not None or run.is_over:
        return False
    return provider_of(attempt.pod_id)[0] != LOCAL


def why_unknown(home: Home, run: Run) -> str:
    """Return why the run's rented machine cannot be queried from here, or "" if it can or there is none."""
    if not is_elsewhere(run) or run.current_attempt is None or run.current_attempt.pod_id is None:
        return ""
    provider = provider_of(run.current_attempt.pod_id)[0]
    if provider in home.pods().names:
        return ""
    return f"the machine of {run.run_id} is rented from {provider}, which is not set up here; {advice_for(provider)}"


def is_watched_elsewhere(home: Home, run: Run) -> bool:
    """Return whether another watcher has installed the agent on the run's machine, which has sent a heartbeat since. If so, the host key
    that the machine presents at the first login from here is pinned."""
    return bool(home.elsewhere or home.table_url) and run.current_attempt is not None and run.current_attempt.first_heartbeat_s is not None


@dataclass(frozen=True)
class Login:
    """How to log in to a run's machine with a program of the user's. `is_pinned`: its host key was pinned when the agent was installed;
    otherwise that was done elsewhere, and the key presented first is to be pinned."""

    access: "SshAccess"
    is_pinned: bool


def disk_here(home: Home, run: Run) -> Path | None:
    """Return the folder of the run's machine, if that is this one."""
    attempt = run.current_attempt
    return home.local_pods().disk(attempt.pod_id) if attempt is not None and attempt.pod_id is not None else None


def login(home: Home, run: Run) -> Login:
    """Return how to log in to the run's rented machine. Raises UsageError if there is none, or nobody can log in to it from here now."""
    if not is_elsewhere(run):
        why = f": {run.why}" if run.why else ""
        fix = Advice("look at its logs: ", Call(Operation.LOGS, run.run_id))
        raise UsageError(f"{run.run_id} has no machine now, it is {run.state.value}{why}", fix=fix)
    unknown = why_unknown(home, run)
    if unknown:
        raise UsageError(unknown)
    from prime_train.adapters.ssh.known_hosts import KnownHosts

    access = home.ssh_access(run)
    is_pinned = access is not None and KnownHosts(access.known_hosts).knows(access.connection.pod_id)
    if access is None or not (is_pinned or is_watched_elsewhere(home, run)):
        fix = Advice("try again when ", Call(Operation.STATUS, run.run_id), " says starting or training")
        raise UsageError(f"the machine of {run.run_id} is still booting, or does not accept logins yet", fix=fix, code=Exit.EXTERNAL_FAILED)
    access.known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Login(access, is_pinned)


@contextmanager
def reached(home: Home, run: Run) -> Iterator[Machine | None]:
    """Connect to the run's machine for the duration of the `with` block. Yields None, without logging in, if there is no machine, if it is
    not reached by SSH, or if no agent has been installed on it yet.

    Raises TemporaryError if the machine cannot be reached now, and PermanentError if its host key has changed.
    """
    access = home.ssh_access(run) if is_elsewhere(run) else None
    if access is None:
        yield None
        return
    from prime_train.adapters.ssh.keys import login_key
    from prime_train.adapters.ssh.known_hosts import KnownHosts
    from prime_train.adapters.ssh.shell import connect

    hosts = KnownHosts(access.known_hosts)
    if not hosts.knows(access.connection.pod_id) and not is_watched_elsewhere(home, run):
        yield None
        return
    with connect(access.connection, login_key(access.key_file.parent, home.master()), hosts) as shell:
        yield Machine(shell, f"{run.run_id}-e{run.attempt}")


def file_of(machine: Machine, path: str, *, bytes_max: int) -> bytes:
    """Return at most the last `bytes_max` bytes of a file; `path` is relative to the agent's folder. Empty if there is no such file. The
    file is transferred compressed. Raises TemporaryError if the transfer is incomplete."""
    file = shlex.quote(path)
    command = f"cd {machine.disk} 2>/dev/null && [ -f {file} ] && tail -c {bytes_max} {file} | gzip -1 || exit {NO_FILE}"
    fetched = machine.shell.fetch(command, bytes_max=bytes_max, limit_s=FETCH_S_MAX)
    try:
        return zlib.decompressobj(wbits=GZIP).decompress(fetched.data, bytes_max) if fetched.code == 0 else b""
    except zlib.error as error:
        raise TemporaryError(f"{machine.shell.where}: {path} arrived incomplete") from error

"""The machines of runs: where their files are, on this machine or on one that is reached over SSH."""

import shlex
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.advice import Advice, Call, Operation
from prime_train.environment import STORE
from prime_train.errors import TemporaryError, UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.by_name import provider_of
from prime_train.providers.configured import Providers, SshAccess
from prime_train.providers.kinds import LOCAL, advice_for
from prime_train.runs.run import Run

if TYPE_CHECKING:
    from prime_train.providers.ssh_client.shell import Shell

NO_FILE = 76
FETCH_S_MAX = 120.0
GZIP = 31
"""zlib's `wbits` value for the gzip format."""


@dataclass(frozen=True)
class MachineConnection:
    """A connection to a run's machine. `attempt`: the name of the agent's folder on it."""

    shell: "Shell"
    attempt: str

    @property
    def disk(self) -> str:
        """A shell expression, evaluated on the machine, for the folder in which the agent works."""
        return f'"$(cat "$HOME/.prime-train/{self.attempt}/disk")"'

    def end_of(self, path: str, *, bytes_max: int) -> bytes:
        """Return at most the last `bytes_max` bytes of a file; `path` is relative to the agent's folder.
        Empty if there is no such file. The file is transferred compressed. Raises TemporaryError if the
        transfer is incomplete.
        """
        file = shlex.quote(path)
        command = (
            f"cd {self.disk} 2>/dev/null && [ -f {file} ] && tail -c {bytes_max} {file} | gzip -1 "
            "|| "
            f"exit {NO_FILE}"
        )
        fetched = self.shell.fetch(command, bytes_max=bytes_max, limit_s=FETCH_S_MAX)
        try:
            return (
                zlib.decompressobj(wbits=GZIP).decompress(fetched.data, bytes_max)
                if fetched.code == 0
                else b""
            )
        except zlib.error as error:
            raise TemporaryError(f"{self.shell.where}: {path} arrived incomplete") from error


@dataclass(frozen=True)
class Login:
    """How to log in to a run's machine with a program of the user's. `is_pinned`: its host key was pinned
    when the agent was installed; otherwise that was done elsewhere, and the key presented first is to be
    pinned.
    """

    access: SshAccess
    is_pinned: bool


@dataclass(frozen=True)
class Machines:
    """The machines of runs, as they can be reached from here. `open_providers`: called when the first one is
    looked for; `logs_in`: whether rented machines are logged in to.
    """

    open_providers: Callable[[], Providers]
    logs_in: bool = True

    @cached_property
    def _providers(self) -> Providers:
        return self.open_providers()

    def disk(self, run: Run, number: int | None = None) -> Path | None:
        """Return the folder of the machine of attempt `number`, by default the current attempt; None if that
        is not this machine.
        """
        wanted = run.attempt if number is None else number
        attempt = next((attempt for attempt in run.attempts if attempt.number == wanted), None)
        return (
            self._providers.local.disk(attempt.pod_id)
            if attempt is not None and attempt.pod_id is not None
            else None
        )

    def why_unknown(self, run: Run) -> str:
        """Return why the run's rented machine cannot be queried from here, or "" if it can or there is
        none.
        """
        if (
            not self.logs_in
            or not is_elsewhere(run)
            or run.current_attempt is None
            or run.current_attempt.pod_id is None
        ):
            return ""
        provider = provider_of(run.current_attempt.pod_id)[0]
        if provider in self._providers.pods.names:
            return ""
        return (
            f"the machine of {run.run_id} is rented from {provider}, which is not set up "
            "here; "
            f"{advice_for(provider)}"
        )

    def login(self, run: Run) -> Login:
        """Return how to log in to the run's rented machine. Raises UsageError if there is none, or nobody can
        log in to it from here now.
        """
        if not is_elsewhere(run):
            why = f": {run.why}" if run.why else ""
            fix = Advice("look at its logs: ", Call(Operation.LOGS, run.run_id))
            raise UsageError(f"{run.run_id} has no machine now, it is {run.state.value}{why}", fix=fix)
        unknown = self.why_unknown(run)
        if unknown:
            raise UsageError(unknown)
        from prime_train.providers.ssh_client.known_hosts import KnownHosts

        access = self._ssh_access(run)
        is_pinned = access is not None and KnownHosts(access.known_hosts).knows(access.connection.pod_id)
        if access is None or not (is_pinned or self._is_watched_elsewhere(run)):
            fix = Advice("try again when ", Call(Operation.STATUS, run.run_id), " says starting or training")
            message = f"the machine of {run.run_id} is still booting, or does not accept logins yet"
            raise UsageError(message, fix=fix, code=Exit.EXTERNAL_FAILED)
        access.known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Login(access, is_pinned)

    @contextmanager
    def reached(self, run: Run) -> Iterator[MachineConnection | None]:
        """Connect to the run's machine for the duration of the `with` block. Yields None, without logging in,
        if there is no machine, if it is not reached by SSH, or if no agent has been installed on it yet.

        Raises TemporaryError if the machine cannot be reached now, and PermanentError if its host key has
        changed.
        """
        access = self._ssh_access(run) if self.logs_in and is_elsewhere(run) else None
        if access is None:
            yield None
            return
        from prime_train.providers.ssh_client.known_hosts import KnownHosts
        from prime_train.providers.ssh_client.shell import connect

        hosts = KnownHosts(access.known_hosts)
        if not hosts.knows(access.connection.pod_id) and not self._is_watched_elsewhere(run):
            yield None
            return
        with connect(access.connection, self._providers.login_key, hosts) as shell:
            yield MachineConnection(shell, f"{run.run_id}-e{run.attempt}")

    def _ssh_access(self, run: Run) -> SshAccess | None:
        """Return how to log in to the machine of the run's newest attempt; None: there is none, or it has no
        SSH.
        """
        attempt = run.current_attempt
        if attempt is None or attempt.pod_id is None or attempt.ended_s is not None:
            return None
        return self._providers.ssh_access(attempt.pod_id, run.run_id, attempt.number)

    def _is_watched_elsewhere(self, run: Run) -> bool:
        """Return whether another watcher has installed the agent on the run's machine, which has sent a
        heartbeat since. If so, the host key that the machine presents at the first login from here is pinned.
        """
        is_remote = bool(self._providers.environment.get(STORE))
        return (
            is_remote
            and run.current_attempt is not None
            and run.current_attempt.first_heartbeat_s is not None
        )


def is_elsewhere(run: Run) -> bool:
    """Return whether the run has a rented machine now. Ids of pods on this machine have no provider's name in
    them.
    """
    attempt = run.current_attempt
    if attempt is None or attempt.pod_id is None or attempt.fenced_s is not None or run.is_over:
        return False
    return provider_of(attempt.pod_id)[0] != LOCAL

"""Installs the agent on a machine: inspects the machine, sends what is missing, and starts the agent.

All decisions are made on the machine, in bring_up.sh, because a connection may end between any two steps and
another control plane may be pushing at the same time. The ticket is sent by standard input into a file
readable by its owner only; no command line contains any of it.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.install.agent_bundle import BRING_UP, pack
from prime_train.providers.ssh_client.keys import LoginKey
from prime_train.providers.ssh_client.known_hosts import KnownHosts
from prime_train.providers.ssh_client.shell import Address, CommandResult, Shell, connect
from prime_train.runs.wire import Ticket
from prime_train.spec.image_contents import FOLDER

DISKS = ("/workspace", "/ephemeral", "~")
INSTALL_S_MAX = 900.0
LATER, NEVER = 75, 78
_LOOKED = re.compile(r"^(running|installed|bare)$", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """How the agent is installed on a machine. `python`: an interpreter there that already has the agent (an
    image may contain it); if empty, the agent is installed. `image`: the folder in which images that
    prime-train has built hold the agent. `disks`: candidate folders for the agent's work; the writable one
    with the most free space is used.
    """

    python: str = ""
    image: str = FOLDER
    disks: tuple[str, ...] = DISKS


def _no_progress(_: str) -> None:
    """Ignore the progress."""


class AgentPusher:
    """The port `Pusher`. It logs in with `key`, and keeps the host keys of an attempt in
    `attempts`/<run>-e<attempt>/known_hosts.

    An agent that has ended is started again: pushing is the control plane's decision, and a fenced agent
    leaves by itself. `progress` is called with a short text for each step.
    """

    def __init__(
        self,
        key: LoginKey,
        attempts: Path,
        *,
        recipe: Recipe | None = None,
        progress: Callable[[str], None] = _no_progress,
    ) -> None:
        self._key, self._attempts, self._progress = key, attempts, progress
        self._recipe = recipe if recipe is not None else Recipe()

    def __call__(self, connection: Address, ticket: Ticket) -> None:
        """Install and start the agent. Raises TemporaryError, after which the caller should retry, if the
        machine was not reached or the outcome is unknown; PermanentError if the agent cannot run there.
        """
        attempt = f"{ticket.run}-e{ticket.attempt}"
        with connect(connection, self._key, KnownHosts(self._attempts / attempt / "known_hosts")) as shell:
            try:
                self._bring(shell, attempt, ticket)
            except (TemporaryError, PermanentError) as error:
                # The message may hold text from the machine, which has read the ticket.
                raise type(error)(str(error).replace(ticket.key, "***")) from None

    def _bring(self, shell: Shell, attempt: str, ticket: Ticket) -> None:
        digest = "" if self._recipe.python else pack().digest
        looked = _LOOKED.search(_fit(shell, self._script(shell, "look", attempt, digest)).text)
        if looked is None:
            raise TemporaryError(f"{shell.where}: the machine's answer cannot be parsed")
        if looked[1] == "running":
            return
        if looked[1] == "bare":
            self._send(shell)
            self._progress("installing")
        shell.put(f".prime-train/{attempt}/ticket.json", ticket.model_dump_json().encode())
        _fit(shell, self._script(shell, "up", attempt, digest))
        self._progress("started")

    def _script(self, shell: Shell, verb: str, attempt: str, digest: str) -> CommandResult:
        words = (
            "sh",
            "-s",
            "--",
            verb,
            attempt,
            digest,
            self._recipe.python,
            self._recipe.image,
            *self._recipe.disks,
        )
        return shell.run(shlex.join(words), stdin=BRING_UP.read_bytes(), limit_s=INSTALL_S_MAX)

    def _send(self, shell: Shell) -> None:
        parcel, before_bytes = pack(), 0
        for name, data in parcel.files.items():

            def progress(sent_bytes: int, before_bytes: int = before_bytes) -> None:
                self._progress(f"sending {100 * (before_bytes + sent_bytes) // parcel.size_bytes}%")

            shell.put(f".prime-train/files-{parcel.digest}/{name}", data, progress=progress)
            before_bytes += len(data)


def _fit(shell: Shell, result: CommandResult) -> CommandResult:
    """Return the script's result if it succeeded. Raises PermanentError if the machine cannot run the agent,
    else TemporaryError.
    """
    if result.code == 0:
        return result
    kind = PermanentError if result.code == NEVER else TemporaryError
    raise kind(f"{shell.where}: the agent could not be started: {result.tail or f'exit code {result.code}'}")

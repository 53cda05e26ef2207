"""One push: look what is there, bring what is missing, start the agent.

All that decides is done on the machine, in bring_up.sh: a connection may end between any two steps, and another control plane may be at
the same. The ticket goes by standard input into a file of its owner's only; no command names what is in it.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prime_train.adapters.provisioning.parcel import pack
from prime_train.adapters.ssh import Address, KnownHosts, LoginKey, Said, Shell, connect
from prime_train.core.wire import Ticket
from prime_train.ports import PermanentError, TemporaryError

DISKS = ("/workspace", "/ephemeral", "~")
INSTALL_S_MAX = 900.0
LATER, NEVER = 75, 78
_SCRIPT = Path(__file__).with_name("bring_up.sh")
_LOOKED = re.compile(r"^(running|installed|bare)$", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """How a machine comes to its agent. `python`: one there that has the agent already (an image may bring it); empty: it is installed.
    `disks`: where the agent may work; of those that can be written to, the one with the most room is taken."""

    python: str = ""
    disks: tuple[str, ...] = DISKS


def _untold(_: str) -> None:
    """Nobody wants to know how far it is."""


class AgentPusher:
    """The port `Pusher`. Logs in with `key`; what machines of an attempt showed is kept in `attempts`/<run>-e<attempt>/known_hosts.

    An agent that has ended is started again: asking is the control plane's decision, and a fenced one leaves by itself. `progress` is
    told in words what is being done.
    """

    def __init__(self, key: LoginKey, attempts: Path, *, recipe: Recipe | None = None, progress: Callable[[str], None] = _untold) -> None:
        self._key, self._attempts, self._progress = key, attempts, progress
        self._recipe = recipe if recipe is not None else Recipe()

    def __call__(self, connection: Address, ticket: Ticket) -> None:
        """TemporaryError: not reached, or it is not known what became of it; ask again. PermanentError: it cannot run there."""
        attempt = f"{ticket.run}-e{ticket.attempt}"
        with connect(connection, self._key, KnownHosts(self._attempts / attempt / "known_hosts")) as shell:
            try:
                self._bring(shell, attempt, ticket)
            except (TemporaryError, PermanentError) as error:
                # Words of the machine may be in it, and it has read the ticket.
                raise type(error)(str(error).replace(ticket.key, "***")) from None

    def _bring(self, shell: Shell, attempt: str, ticket: Ticket) -> None:
        digest = "" if self._recipe.python else pack().digest
        looked = _LOOKED.search(_fit(shell, self._script(shell, "look", attempt, digest)).text)
        if looked is None:
            raise TemporaryError(f"{shell.where}: the machine's answer is not understood")
        if looked[1] == "running":
            return
        if looked[1] == "bare":
            self._send(shell)
            self._progress("installing")
        shell.put(f".prime-train/{attempt}/ticket.json", ticket.model_dump_json().encode())
        _fit(shell, self._script(shell, "up", attempt, digest))
        self._progress("started")

    def _script(self, shell: Shell, verb: str, attempt: str, digest: str) -> Said:
        words = ("sh", "-s", "--", verb, attempt, digest, self._recipe.python, *self._recipe.disks)
        return shell.run(shlex.join(words), stdin=_SCRIPT.read_bytes(), limit_s=INSTALL_S_MAX)

    def _send(self, shell: Shell) -> None:
        parcel, before_bytes = pack(), 0
        for name, data in parcel.files.items():

            def told(sent_bytes: int, before_bytes: int = before_bytes) -> None:
                self._progress(f"sending {100 * (before_bytes + sent_bytes) // parcel.size_bytes}%")

            shell.put(f".prime-train/files-{parcel.digest}/{name}", data, progress=told)
            before_bytes += len(data)


def _fit(shell: Shell, said: Said) -> Said:
    """The answer of a script that did what it should."""
    if said.code == 0:
        return said
    kind = PermanentError if said.code == NEVER else TemporaryError
    raise kind(f"{shell.where}: the agent could not be started: {said.tail or f'exit code {said.code}'}")

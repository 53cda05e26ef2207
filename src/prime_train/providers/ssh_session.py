"""The program that opens a shell, or runs a command, on a run's machine."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.app.machines import Machines
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.configured import SshAccess
from prime_train.runs.lookup import find
from prime_train.runs.store import Store

PROGRAM = "ssh"
ALIVE_S = 15
SHELL = "/bin/sh"
_FORWARD = re.compile(
    r"(?:(?:[\w.*-]+|\[[0-9a-fA-F:.]+\]):)?[0-9]{1,5}:(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"
)
"""A port to forward: [bind_address:]port:host:hostport, as in ssh's -L; its sockets of files are not
offered.
"""
PORT_MAX = 65_535


@dataclass(frozen=True)
class Program:
    """A program to run with `words` as its arguments, the first of which is its name. `folder`: the folder to
    run it in; None: any.
    """

    path: str
    words: tuple[str, ...]
    folder: Path | None = None


def shell_on_machine(
    store: Store,
    machines: Machines,
    name: str,
    line: str | None,
    *,
    shell: str,
    terminal: bool,
    forward: Sequence[str] = (),
) -> Program:
    """Return the program that opens a shell on the machine of the run that `name` stands for, in the folder
    its agent works in. `line`: a command to run there instead; `shell`: the user's shell, empty if not known;
    `terminal`: whether the program runs in a terminal; `forward`: ports to forward, such as
    6006:localhost:6006.

    Raises UsageError if a port is not one, there is no such run or it has no machine, nobody can log in to it
    from here now, or ssh is not installed here.
    """
    for one in forward:
        ports = [int(part) for part in re.findall(r"(?:^|:)([0-9]{1,5})(?=:|$)", one)]
        if not _FORWARD.fullmatch(one) or not all(0 < port <= PORT_MAX for port in ports):
            raise UsageError(
                f"-L {one[:80]!r} is not a port to forward",
                fix="write it as for ssh, such as -L 6006:localhost:6006",
            )
    run = find(store, name).run
    disk = machines.disk(run)
    if disk is not None and forward:
        raise UsageError(
            f"{run.run_id} trains on this machine, where its ports can be reached as they are",
            fix="leave out -L",
        )
    if disk is not None:
        return _here(shell or SHELL, disk, line)
    if shutil.which(PROGRAM) is None:
        raise UsageError(
            "the program ssh is not installed on this machine",
            fix="install OpenSSH's client",
            code=Exit.EXTERNAL_REFUSED,
        )
    to = machines.login(run)
    # The name of the folder with the agent's files on the machine.
    return Program(
        PROGRAM,
        tuple(
            _ssh_words(
                to.access,
                f"{run.run_id}-e{run.attempt}",
                line,
                terminal=terminal,
                is_pinned=to.is_pinned,
                forward=forward,
            )
        ),
    )


def _here(shell: str, disk: Path, line: str | None) -> Program:
    if line is not None:
        return Program(SHELL, ("sh", "-c", line), disk)
    return Program(shell, (Path(shell).name,), disk)


def _ssh_words(
    access: SshAccess,
    attempt: str,
    line: str | None,
    *,
    terminal: bool,
    is_pinned: bool,
    forward: Sequence[str] = (),
) -> list[str]:
    """Return the ssh command line that logs in and changes to the agent's folder.

    Only prime-train's key is offered, and only to a machine whose host key was pinned when the agent was
    installed. If that was done elsewhere (`is_pinned` False), the host key presented first is pinned. The
    user's ssh settings are ignored, as they are when the control plane logs in.
    """
    to = access.connection
    settings = {
        "UserKnownHostsFile": _quoted(access.known_hosts),
        "GlobalKnownHostsFile": "none",
        "HostKeyAlias": to.pod_id,
        "StrictHostKeyChecking": "yes" if is_pinned else "accept-new",
        "IdentityFile": _quoted(access.key_file),
        "IdentitiesOnly": "yes",
        "PreferredAuthentications": "publickey",
        "ServerAliveInterval": str(ALIVE_S),
    }
    words = [
        PROGRAM,
        "-F",
        "none",
        *(word for name, value in settings.items() for word in ("-o", f"{name}={value}")),
    ]
    words += ["-t"] if terminal else []
    # A port that is taken here ends it, so that nobody looks at another program's page.
    words += ["-o", "ExitOnForwardFailure=yes"] if forward else []
    words += [word for one in forward for word in ("-L", one)]
    return [*words, "-l", to.user, "-p", str(to.port), "--", to.host, _in_folder(attempt, line)]


def _quoted(path: Path) -> str:
    """Return a path quoted for an ssh option, because ssh splits these at blanks and expands percent
    signs.
    """
    return '"' + str(path).replace("%", "%%") + '"'


def _in_folder(attempt: str, line: str | None) -> str:
    # If the folder does not exist (any more), stay in the home folder.
    go = f'cd "$(cat "$HOME/.prime-train/{attempt}/disk" 2>/dev/null)" 2>/dev/null || cd'
    return f'{go}; exec "${{SHELL:-/bin/sh}}" -l' if line is None else f"{go}; {line}"

"""`prime-train ssh RUN [-- COMMAND...]`: open a shell, or run a command, on the run's machine."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.control_plane.wiring.home import Home
    from prime_train.control_plane.wiring.providers import Reach
    from prime_train.core.run import Run

PROGRAM = "ssh"
ALIVE_S = 15


def ssh(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="After --: what to run there, instead of a shell.", show_default=False)
    ] = None,
) -> None:
    """Open a shell on the run's machine.

    In the folder its agent works in. One word of COMMAND is a line for the shell there; several are a program and its arguments.
    Leaves with the code of what was run, and with 255 where ssh itself failed.
    """
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.run_lookup import find

    home = Home.of(os.environ)
    found = find(home.store(), run).run
    disk = _disk_here(home, found)
    if disk is not None:
        _here(disk, _line(command))
    _there(home, found, _line(command))


def ssh_words(reach: "Reach", attempt: str, line: str | None, *, terminal: bool, is_pinned: bool = True) -> list[str]:
    """Return the ssh command line that logs in and changes to the agent's folder. `line`: the command to run there; None: a shell.

    Only prime-train's key is offered, and only to a machine whose host key was pinned when the agent was installed. If that was done
    elsewhere (`is_pinned` False), the host key presented first is pinned. The user's ssh settings are ignored, as they are when the control
    plane logs in.
    """
    to = reach.connection
    settings = {
        "UserKnownHostsFile": _quoted(reach.known_hosts),
        "GlobalKnownHostsFile": "none",
        "HostKeyAlias": to.pod_id,
        "StrictHostKeyChecking": "yes" if is_pinned else "accept-new",
        "IdentityFile": _quoted(reach.key_file),
        "IdentitiesOnly": "yes",
        "PreferredAuthentications": "publickey",
        "ServerAliveInterval": str(ALIVE_S),
    }
    words = [PROGRAM, "-F", "none", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    words += ["-t"] if terminal else []
    return [*words, "-l", to.user, "-p", str(to.port), "--", to.host, _in_folder(attempt, line)]


def _quoted(path: Path) -> str:
    """Return a path quoted for an ssh option, because ssh splits these at blanks and expands percent signs."""
    return '"' + str(path).replace("%", "%%") + '"'


def _in_folder(attempt: str, line: str | None) -> str:
    # If the folder does not exist (any more), stay in the home folder.
    go = f'cd "$(cat "$HOME/.prime-train/{attempt}/disk" 2>/dev/null)" 2>/dev/null || cd'
    return f'{go}; exec "${{SHELL:-/bin/sh}}" -l' if line is None else f"{go}; {line}"


def _line(command: list[str] | None) -> str | None:
    if not command:
        return None
    return command[0] if len(command) == 1 else shlex.join(command)


def _disk_here(home: "Home", run: "Run") -> Path | None:
    attempt = run.current_attempt
    return home.local_pods().disk(attempt.pod_id) if attempt is not None and attempt.pod_id is not None else None


def _here(disk: Path, line: str | None) -> NoReturn:
    """Run the command or shell in the pod's folder on this machine."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    os.chdir(disk)
    _become("/bin/sh" if line is not None else shell, ["sh", "-c", line] if line is not None else [Path(shell).name])


def _there(home: "Home", run: "Run", line: str | None) -> NoReturn:
    from prime_train.adapters.ssh import KnownHosts
    from prime_train.operations.machine import is_elsewhere, is_watched_elsewhere, why_unknown

    if not is_elsewhere(run):
        why = f": {run.why}" if run.why else ""
        raise UsageError(f"{run.run_id} has no machine now, it is {run.state.value}{why}", fix=f"prime-train logs {run.run_id}")
    unknown = why_unknown(home, run)
    if unknown:
        raise UsageError(unknown)
    if shutil.which(PROGRAM) is None:
        raise UsageError("there is no program ssh on this machine", fix="install OpenSSH's client", code=Exit.OUTSIDE_REFUSED)
    reach = home.reach(run)
    is_pinned = reach is not None and KnownHosts(reach.known_hosts).knows(reach.connection.pod_id)
    if reach is None or not (is_pinned or is_watched_elsewhere(home, run)):
        fix = f"try again when `prime-train status {run.run_id}` says starting or training"
        raise UsageError(f"the machine of {run.run_id} is still booting, or nobody can log in there yet", fix=fix, code=Exit.OUTSIDE_FAILED)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    reach.known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _become(PROGRAM, ssh_words(reach, f"{run.run_id}-e{run.attempt}", line, terminal=terminal, is_pinned=is_pinned))


def _become(program: str, words: list[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(program, words)

"""`prime-train ssh RUN [-L PORT:HOST:PORT] [-- COMMAND...]`: open a shell, or run a command, on the run's
machine.
"""

import os
import shlex
import sys
from typing import Annotated

import typer


def ssh(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="After --: command to run there instead of a shell.", show_default=False
        ),
    ] = None,
    forward: Annotated[
        list[str] | None,
        typer.Option(
            "-L",
            metavar="PORT:HOST:PORT",
            help="Forward a port of this machine to one that the run's machine reaches, as ssh does; may be "
            "repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Open a shell on the run's machine.

    The shell starts in the folder of the run's agent. A COMMAND of one word is a line for the shell there;
    several words are a program and its arguments. The exit code is that of the shell or command, or 255 if
    ssh itself failed.
    """
    from prime_train.app.home import Home
    from prime_train.providers.ssh_session import shell_on_machine

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    home = Home.of(os.environ)
    program = shell_on_machine(
        home.store(),
        home.files().machines,
        run,
        _line(command),
        shell=os.environ.get("SHELL", ""),
        terminal=terminal,
        forward=forward or (),
    )
    if program.folder is not None:
        os.chdir(program.folder)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(program.path, program.words)


def _line(command: list[str] | None) -> str | None:
    if not command:
        return None
    return command[0] if len(command) == 1 else shlex.join(command)

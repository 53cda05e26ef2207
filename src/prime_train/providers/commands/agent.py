"""`prime-train agent --ticket FILE|-`: run the agent of one attempt on this machine, by hand."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def agent(
    ticket: Annotated[
        str,
        typer.Option(
            "--ticket", metavar="FILE", help="The attempt's ticket; -: standard input.", show_default=False
        ),
    ],
    disk: Annotated[
        Path | None,
        typer.Option(
            "--disk",
            metavar="DIR",
            help="Folder to work in; by default ~/prime-train/RUN-eN.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the agent of one attempt on this machine.

    Control planes start agents by themselves. This is for a machine on which the agent has ended, or which
    you prepared yourself: it needs the attempt's ticket, which is as good as a password for the run. The
    agent stays in the foreground until the attempt ends. If another attempt has replaced this one, it leaves
    at once.
    """
    from prime_train.watch.agent_by_hand import agent_command

    words = agent_command(sys.stdin.buffer.read if ticket == "-" else Path(ticket), disk)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], words)

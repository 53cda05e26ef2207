"""`prime-train demo`: show a run that loses its machine and finishes nevertheless."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit

LOG_WIDTH = 120
"""The width in columns if the output is not a terminal."""


def demo(
    seconds_per_step: Annotated[
        float, typer.Option(min=0.0, max=10.0, help="Minimum seconds per step.")
    ] = 0.1,
    kill: Annotated[
        bool, typer.Option("--kill/--no-kill", help="Preempt the machine in the middle of the training.")
    ] = True,
    keep: Annotated[
        bool, typer.Option("--keep", help="Do not delete the control plane's folder afterwards.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the page and the chart.")] = Path("build/demo"),
) -> Exit:
    """Run a demo: a run loses its machine and finishes.

    Starts a control plane of its own, trains a small real model, takes its machine away without notice, and
    shows the recovery. Only a page with the chart is left behind.
    """
    from prime_train.demo.commands.ending import show_end
    from prime_train.demo.commands.playing import show_play
    from prime_train.demo.stage import demo_spec, stage
    from prime_train.terminal.console import console as open_console

    console = open_console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    spec = demo_spec(seconds_per_step)
    with stage(spec, os.environ, keep=keep, warn=lambda text: print(text, file=sys.stderr)) as here:
        story = show_play(here, spec, console, kill=kill)
        return show_end(here, story, console, out=out, killed=kill)

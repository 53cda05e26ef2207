"""`prime-train demo`: show a run that loses its machine and finishes nevertheless."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from prime_train.core.exit_codes import Exit

LOG_WIDTH = 120
"""The width in columns if the output is not a terminal."""


def demo(
    seconds_per_step: Annotated[float, typer.Option(min=0.0, max=10.0, help="Least time of a step.")] = 0.1,
    kill: Annotated[bool, typer.Option("--kill/--no-kill", help="Take the machine away in mid-training.")] = True,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the control plane's folder.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the page and the picture.")] = Path("build/demo"),
) -> Exit:
    """See it work: a run loses its machine and finishes.

    Starts a control plane of its own, trains a small real model, takes its machine away without notice, and shows the recovery.
    Nothing is left behind but a page with the picture.
    """
    from prime_train.cli.demo.ending import show_end
    from prime_train.cli.demo.play import play
    from prime_train.cli.demo.stage import demo_spec, stage
    from prime_train.output import console as open_console

    console = open_console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    spec = demo_spec(seconds_per_step)
    with stage(spec, keep=keep) as here:
        story = play(here, console, kill=kill)
        return show_end(here, story, console, out=out, killed=kill)

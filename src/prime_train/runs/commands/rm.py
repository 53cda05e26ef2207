"""`prime-train rm RUN...`: archive ended runs."""

import os
from functools import partial
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import Quiet


def rm(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help="Runs, by id, start of the id, or config's name.", show_default=False
        ),
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Restore them from the archive.")] = False,
    quiet: Quiet = False,
) -> Exit:
    """Archive ended runs, so that status does not list them.

    Nothing is deleted: checkpoints and outputs are kept, status --archived lists the runs, and all other
    commands accept their ids. Resuming a run takes it out of the archive.
    """
    from prime_train.app.home import Home
    from prime_train.runs.archive import archive
    from prime_train.runs.requests import for_each
    from prime_train.terminal.several_runs import exit_code, printed

    request = partial(archive, Home.of(os.environ).store(), undo=undo)
    done = "restored from the archive" if undo else "archived"
    return exit_code(
        [printed(result, lambda _: done, quiet=quiet) for result in for_each(runs, request)],
        f"could not be {done}",
    )

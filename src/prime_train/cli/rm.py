"""`prime-train rm RUN...`: put ended runs away."""

import os
from functools import partial
from typing import Annotated

import typer

from prime_train.cli.arguments import Quiet
from prime_train.core.exit_codes import Exit


def rm(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Runs, by id, its start, or their config's name.", show_default=False)],
    undo: Annotated[bool, typer.Option("--undo", help="Take them out of the archive again.")] = False,
    quiet: Quiet = False,
) -> Exit:
    """Archive ended runs: status leaves them out.

    Nothing is deleted: checkpoints stay, status --archived shows the runs, and all else works by their ids. A run that is resumed is out of
    the archive.
    """
    from prime_train.cli.batch import exit_code, printed
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.archive import archive
    from prime_train.operations.run_requests import for_each

    request = partial(archive, Home.of(os.environ).store(), undo=undo)
    done = "taken out of the archive" if undo else "archived"
    return exit_code([printed(result, lambda _: done, quiet=quiet) for result in for_each(runs, request)], f"could not be {done}")

"""`prime-train outputs RUN [COMMAND]`: list, download and compare what a run left besides checkpoints."""

import typer

from prime_train.cli.checkpoints import RunFirst

outputs = typer.Typer(
    add_completion=False, cls=RunFirst, no_args_is_help=True, subcommand_metavar="RUN [COMMAND] [ARGS]...", rich_markup_mode=None
)


@outputs.callback()
def options() -> None:
    """List, get and compare a run's outputs, logs, metrics.

    RUN is the run, or the start of its id; with --bucket, a whole id is enough, and nothing else is needed. Without a command, its outputs
    are listed.
    """

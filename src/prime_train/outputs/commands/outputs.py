"""`prime-train outputs RUN [COMMAND]`: list, download and compare what a run produced besides checkpoints."""

import typer

from prime_train.checkpoints.commands.group import RunFirst

outputs = typer.Typer(
    add_completion=False,
    cls=RunFirst,
    no_args_is_help=True,
    subcommand_metavar="RUN [COMMAND] [ARGS]...",
    rich_markup_mode=None,
)


@outputs.callback()
def options() -> None:
    """List, get and compare a run's outputs, logs, metrics.

    RUN is a run's id, or the start of one. With --bucket, RUN must be the complete id, and no control plane
    is needed. Without a command, the outputs are listed.
    """

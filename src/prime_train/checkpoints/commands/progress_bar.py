"""A progress bar for transfers, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from prime_train.checkpoints.restore import Reported, unreported
from prime_train.terminal.console import console as open_console


@contextmanager
def bar(what: str, total_bytes: int) -> Iterator[Reported]:
    """Show bytes, rate and remaining time until the block ends. Shows nothing if standard error is not a
    terminal.
    """
    console = open_console(stderr=True)
    if not console.is_terminal:
        yield unreported
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total_bytes)
        yield lambda done, total: progress.update(task, completed=done, total=total)

"""How far a transfer is, on the error output of a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from prime_train.checkpoints.restore import Reported, unreported
from prime_train.output import console as open_console


@contextmanager
def bar(what: str, total_bytes: int) -> Iterator[Reported]:
    """Bytes, rate and time left, gone at the end. Nothing where the error output is no terminal."""
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

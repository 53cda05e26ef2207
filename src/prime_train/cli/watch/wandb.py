"""`prime-train watch --wandb ENTITY/PROJECT`: report runs that have fallen silent in W&B, and do nothing else."""

from threading import Event

import typer

from prime_train.control_plane.wiring.home import Home
from prime_train.core.exit_codes import Exit
from prime_train.operations.stale_runs import description, find_stale, watch_stale


def report_once(home: Home, where: str, *, quiet_s: int) -> Exit:
    """Report each silent run, and return OK only if there is none."""
    stale = find_stale(home, where, quiet_s)
    for one in stale:
        typer.echo(description(one))
    typer.echo(f"{len(stale)} silent in {where}")
    return Exit.FINDINGS if stale else Exit.OK


def report_until(ended: Event, home: Home, where: str, *, quiet_s: int, interval_s: float) -> Exit:
    """Report each run once when it has fallen silent, until `ended` is set."""
    for report in watch_stale(home, where, quiet_s, ended, interval_s=interval_s):
        for one in report.new:
            typer.echo(description(one))
        if report.error:
            typer.echo(report.error, err=True)
    return Exit.OK

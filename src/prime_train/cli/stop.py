"""`prime-train stop RUN`: save, flush, give the machine back."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.control_plane.wiring.home import Home


def stop(
    run: Annotated[str | None, typer.Argument(help="The run, or the start of its id.", show_default=False)] = None,
    now: Annotated[bool, typer.Option("--now", help="At once, without saving.")] = False,
    machine: Annotated[str | None, typer.Option("--machine", help="A machine of no run, by its id.", show_default=False)] = None,
) -> None:
    """Stop a run.

    It saves, flushes and gives its machine back.
    """
    from prime_train.control_plane.wiring.home import Home

    home = Home.of(os.environ)
    if (run is None) == (machine is None):
        raise UsageError("either a run or a machine", fix="prime-train stop RUN, or prime-train stop --machine ID", code=Exit.USAGE)
    if run is not None:
        _stop_run(home, run, now=now)
    if machine is not None:
        _give_back(home, machine)


def _stop_run(home: "Home", run: str, *, now: bool) -> None:
    from prime_train.operations.stop import stop as stop_run

    held = stop_run(home, run, now=now)
    typer.echo(f"{held.run.run_id}: asked to {'end at once' if now else 'save and stop'}")
    if home.serving() is None:
        typer.echo("no control plane serves it: start one (prime-train serve), or it goes on")


def _give_back(home: "Home", pod_id: str) -> None:
    from prime_train.operations.stop import give_back

    typer.echo(f"{pod_id} ({give_back(home, pod_id).name}): asked the provider to take it back")

"""`prime-train stop RUN...`: stop runs after a last checkpoint, and terminate their machines."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.stop import StopResult


def stop(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Runs, by id, its start, or their config's name.", show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All runs that are not over.")] = False,
    now: Annotated[bool, typer.Option("--now", help="At once, without saving.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    machine: Annotated[str | None, typer.Option("--machine", help="A machine of no run, by its id.", show_default=False)] = None,
) -> Exit:
    """Stop runs.

    Each run saves, uploads and gives its machine back. If one cannot be stopped, the others are stopped all the same.
    """
    from prime_train.control_plane.wiring.home import Home

    if [bool(runs), every, machine is not None].count(True) != 1:
        raise UsageError("either runs, or all of them, or a machine", fix="prime-train stop RUN, stop --all, or stop --machine ID")
    home = Home.of(os.environ)
    if machine is not None:
        _give_back(home, machine)
        return Exit.OK
    names = runs or _all(home, now=now, yes=yes)
    return _stop(home, names, now=now, even_ended=every)


def _all(home: "Home", *, now: bool, yes: bool) -> list[str]:
    """Print all active runs, ask for confirmation, and return their ids."""
    from prime_train.cli.confirm import confirm
    from prime_train.operations.stop import active_runs

    found = active_runs(home.store())
    for one in found:
        typer.echo(f"{one.run}: {one.state}, step {one.progress}, {one.money}")
    if found:
        how = "End at once, without saving," if now else "Stop"
        confirm(f"{how} {'this run' if len(found) == 1 else f'these {len(found)} runs'}?", yes=yes)
    else:
        typer.echo("no run is active")
    return [one.run for one in found]


def _stop(home: "Home", names: "Sequence[str]", *, now: bool, even_ended: bool) -> Exit:
    from prime_train.operations.stop import stop_each

    codes = [_said(result, now=now) for result in stop_each(home, names, now=now, even_ended=even_ended)]
    failed = [code for code in codes if code is not Exit.OK]
    if len(codes) > 1 and failed:
        print(f"prime-train: {len(failed)} of {len(codes)} runs could not be asked to stop", file=sys.stderr)
    if len(failed) < len(codes) and home.serving() is None:
        it, goes = ("it", "it goes") if len(codes) - len(failed) == 1 else ("them", "they go")
        typer.echo(f"no control plane serves {it}: start one (prime-train serve), or {goes} on")
    return failed[0] if failed else Exit.OK


def _said(result: "StopResult", *, now: bool) -> Exit:
    """Print the result of a request, and return the exit code for it."""
    from prime_train.reports.errors import explained

    if result.run is None:
        assert result.error is not None
        code, text = explained(result.error)
        print(f"prime-train: {text}", file=sys.stderr)
        return code
    run = result.run.run
    typer.echo(f"{run.run_id}: {run.state.value} already" if run.is_over else f"{run.run_id}: asked to {_asked(now)}")
    return Exit.OK


def _asked(now: bool) -> str:
    return "end at once" if now else "save and stop"


def _give_back(home: "Home", pod_id: str) -> None:
    from prime_train.operations.stop import give_back

    typer.echo(f"{pod_id} ({give_back(home, pod_id).name}): asked the provider to take it back")

"""`prime-train stop RUN...`: stop runs after a last checkpoint, and terminate their machines."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import Quiet
from prime_train.terminal.confirm import Yes, confirm
from prime_train.text.invocations import worded

if TYPE_CHECKING:
    from prime_train.providers.port import Pods
    from prime_train.runs.store import Store


def stop(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN", help="Runs, by id, start of the id, or config's name.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Stop all runs that have not ended.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Stop at once, without saving.")] = False,
    yes: Yes = False,
    machine: Annotated[
        str | None,
        typer.Option("--machine", help="Terminate an orphaned machine, by its id.", show_default=False),
    ] = None,
    quiet: Quiet = False,
) -> Exit:
    """Stop runs.

    Each run saves a checkpoint, uploads it and gives its machine back. If one run cannot be stopped, the
    others still are.
    """
    from prime_train.app.home import Home

    if [bool(runs), every, machine is not None].count(True) != 1:
        raise UsageError(
            "give either runs, or --all, or --machine",
            fix="prime-train stop RUN, stop --all, or stop --machine ID",
        )
    home = Home.of(os.environ)
    if machine is not None:
        _give_back(home.store(), home.pods(), machine)
        return Exit.OK
    names = runs or _all(home.store(), now=now, yes=yes)
    return _stop(home.store(), lambda: home.served.is_served, names, now=now, even_ended=every, quiet=quiet)


def _all(store: "Store", *, now: bool, yes: bool) -> list[str]:
    """Print all active runs, ask for confirmation, and return their ids."""
    from prime_train.launch.stop import active_runs, unreadable_with_machine

    found = active_runs(store)
    for run_id in unreadable_with_machine(store):
        typer.echo(
            f"warning: run {run_id} cannot be read and is not stopped; prime-train status {run_id} says why",
            err=True,
        )
    for one in found:
        typer.echo(f"{one.run}: {one.state}, step {one.progress}, {one.money}")
    if found:
        how = "End at once, without saving," if now else "Stop"
        confirm(f"{how} {'this run' if len(found) == 1 else f'these {len(found)} runs'}?", yes=yes)
    else:
        typer.echo("no run is active")
    return [one.run for one in found]


def _stop(
    store: "Store",
    is_served: Callable[[], bool],
    names: Sequence[str],
    *,
    now: bool,
    even_ended: bool,
    quiet: bool,
) -> Exit:
    from prime_train.app.embedded import UNSERVED_STOP
    from prime_train.launch.stop import stop as stop_one
    from prime_train.launch.stop import stop_if_active
    from prime_train.runs.requests import for_each
    from prime_train.terminal.several_runs import exit_code, printed

    request = partial(stop_if_active if even_ended else stop_one, store, now=now)
    stopping = "is ending at once" if now else "is saving and stopping"
    results = for_each(names, request)
    codes = [
        printed(result, lambda run: f"already {run.state.value}" if run.is_over else stopping, quiet=quiet)
        for result in results
    ]
    if Exit.OK in codes and not quiet and not is_served():
        typer.echo(worded(UNSERVED_STOP))
    return exit_code(codes, "could not be asked to stop")


def _give_back(store: "Store", pods: "Pods", pod_id: str) -> None:
    from prime_train.launch.stop import give_back

    typer.echo(f"{pod_id} ({give_back(store, pods, pod_id).name}): asked the provider to terminate it")

"""`prime-train down`: end the control plane that a command has started in the background."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import ExternalError, UsageError
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import Quiet
from prime_train.terminal.confirm import Yes, confirm
from prime_train.text.invocations import in_one_line

if TYPE_CHECKING:
    from prime_train.app.home import Home

UNWATCHED = (
    "Until a control plane serves this home again, machines train on, save and upload within their budgets, "
    "but none is replaced, and none is given back: rented ones cost money even after their training has ended."
)


def down(
    stop_runs: Annotated[
        bool,
        typer.Option("--stop-runs", help="First stop all active runs, and wait until their machines end."),
    ] = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> Exit:
    """End the control plane in the background.

    Ends what run, resume or serve --background have started for this home; if there is nothing to end, it
    says so. If runs are active, it asks first, because nobody watches them afterwards; with --stop-runs, they
    save a checkpoint and end before.
    """
    from prime_train.app.background import end, in_background
    from prime_train.app.home import Home

    home = Home.of(os.environ)
    holder = in_background(home)
    if holder is None:
        typer.echo("" if quiet else f"no control plane serves {home.root}\n", nl=False)
        return Exit.OK
    active = _active(home, must_know=stop_runs)
    if active is None or active:
        typer.echo("" if stop_runs else f"{UNWATCHED}\n", err=True, nl=False)
        question = "Stop these, and then end" if stop_runs else "End"
        confirm(f"{question} the control plane{'' if stop_runs else ' nevertheless'}?", yes=yes)
    if stop_runs and active:
        _stop(home, active)
    is_orderly = end(home, holder)
    how = "ended" if is_orderly else "killed, because it did not end when asked to,"
    typer.echo("" if quiet else f"{how} the control plane of {home.root} ({holder.named})\n", nl=False)
    return Exit.OK


def _active(home: "Home", *, must_know: bool) -> list[str] | None:
    """Print the active runs, and return their ids; None if it is not known which are, or one cannot be read.
    Raises UsageError or ExternalError instead with `must_know`.
    """
    from prime_train.launch.stop import active_runs, unreadable_with_machine

    try:
        store = home.known_store()
        active = active_runs(store) if store is not None else []
        unreadable = unreadable_with_machine(store) if store is not None else []
    except (UsageError, ExternalError) as error:
        if must_know:
            raise
        typer.echo(f"warning: it is not known which runs are active: {in_one_line(error)}", err=True)
        return None
    for one in active:
        typer.echo(f"{one.run}: {one.state}, step {one.progress}, {one.money}", err=True)
    for run_id in unreadable:
        typer.echo(f"{run_id}: cannot be read", err=True)
    if unreadable and must_know:
        raise UsageError(
            f"{', '.join(unreadable)} cannot be stopped", fix=f"prime-train status {unreadable[0]} says why"
        )
    return None if unreadable else [one.run for one in active]


def _stop(home: "Home", run_ids: Sequence[str]) -> None:
    """Stop the runs, and return once none of their machines is paid for."""
    from prime_train.launch.stop import stop_if_active
    from prime_train.terminal.history import await_end

    store = home.store()
    for run_id in run_ids:
        stop_if_active(store, run_id)
    for run_id in run_ids:
        await_end(store, lambda: home.served.is_served, run_id)

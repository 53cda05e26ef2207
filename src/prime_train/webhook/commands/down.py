"""`prime-train down`: end the control plane that a command has started in the background."""

import os
from typing import TYPE_CHECKING

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


def down(yes: Yes = False, quiet: Quiet = False) -> Exit:
    """End the control plane in the background.

    Ends what run, resume or serve --background have started for this home; if there is nothing to end, it
    says so. If runs are active, it asks first, because nobody watches them afterwards. To end them as well,
    stop them before.
    """
    from prime_train.app.background import end, in_background
    from prime_train.app.home import Home

    home = Home.of(os.environ)
    holder = in_background(home)
    if holder is None:
        typer.echo("" if quiet else f"no control plane serves {home.root}\n", nl=False)
        return Exit.OK
    if _has_active(home):
        typer.echo(UNWATCHED, err=True)
        confirm("End the control plane nevertheless?", yes=yes)
    is_orderly = end(home, holder)
    how = "ended" if is_orderly else "killed, because it did not end when asked to,"
    typer.echo("" if quiet else f"{how} the control plane of {home.root} ({holder.named})\n", nl=False)
    return Exit.OK


def _has_active(home: "Home") -> bool:
    """Return whether runs are active, or may be because they cannot be read; say which."""
    from prime_train.launch.stop import active_runs, unreadable_with_machine

    try:
        store = home.known_store()
        active = active_runs(store) if store is not None else []
        unreadable = unreadable_with_machine(store) if store is not None else []
    except (UsageError, ExternalError) as error:
        typer.echo(f"warning: it is not known which runs are active: {in_one_line(error)}", err=True)
        return True
    for one in active:
        typer.echo(f"{one.run}: {one.state}, step {one.progress}, {one.money}", err=True)
    for run_id in unreadable:
        typer.echo(f"{run_id}: cannot be read", err=True)
    return bool(active or unreadable)

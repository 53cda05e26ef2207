"""`prime-train status [RUN]`: how runs stand."""

import os
import threading
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from prime_train.control_plane.wiring.home import Home
    from prime_train.ports import Store
    from prime_train.reports.run_status import Standing

WATCH_S = 1.0


def status(
    run: Annotated[
        str | None, typer.Argument(help="A run's id, its start, or a config's name; without it, all.", show_default=False)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on showing it until the run is over; without RUN, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object, or a list of all.")] = False,
) -> None:
    """Show state, step, spend and restarts."""
    import json

    from prime_train.control_plane.wiring.home import Home

    home = Home.of(os.environ)
    store = home.store()
    if as_json:
        found = _standings(store, run)
        print(json.dumps(found[0].row() if run is not None else [one.row() for one in found], indent=2))
    elif watch:
        from prime_train.operations.run_lookup import find

        # What a name means may change while it is watched.
        _watch(home, store, run and find(store, run).run.run_id)
    else:
        from prime_train.output import console as open_console

        open_console().print(_shown(home, store, run))


def _watch(home: "Home", store: "Store", run_id: str | None) -> None:
    from prime_train.output import console as open_console

    console = open_console()
    if console.is_terminal:
        _watch_on_screen(console, home, store, run_id)
    elif run_id is not None:
        _print_run(home, store, run_id)
    else:
        _print_all(console, home, store)


def _watch_on_screen(console: "Console", home: "Home", store: "Store", run_id: str | None) -> None:
    from rich.live import Live

    pause = threading.Event()
    shown = _shown(home, store, run_id)
    try:
        # On a screen of its own: a terminal that is made narrower would fold what was drawn before into the scrollback.
        with Live(shown, console=console, auto_refresh=False, screen=True) as live:
            while not _is_done(store, run_id):
                live.update(shown, refresh=True)
                pause.wait(WATCH_S)
                shown = _shown(home, store, run_id)
        shown = _shown(home, store, run_id)
    finally:
        console.print(shown)


def _is_done(store: "Store", run_id: str | None) -> bool:
    """Whether the run is over, and nothing of it is paid for any more."""
    held = store.load(run_id) if run_id is not None else None
    return held is not None and held.run.is_over and all(attempt.ended_s is not None for attempt in held.run.attempts)


def _print_run(home: "Home", store: "Store", run_id: str) -> None:
    """For what is no terminal: each thing that happens, once, as a line."""
    from prime_train.cli.follow import await_end
    from prime_train.control_plane.wiring.embedded import UNSERVED, is_left_alone

    run = await_end(store, run_id, is_served=lambda: not is_left_alone(home), unserved=UNSERVED)
    typer.echo(f"{run_id} {run.state.value}: {run.why}")


def _print_all(console: "Console", home: "Home", store: "Store") -> None:
    """All runs, and then each that has changed, as a line."""
    pause = threading.Event()
    console.print(_shown(home, store, None))
    before = _lines(store)
    while True:
        console.file.flush()
        pause.wait(WATCH_S)
        now = _lines(store)
        for line in sorted(now - before):
            typer.echo(line)
        before = now


def _lines(store: "Store") -> set[str]:
    return {f"{one.run} {one.state}: {one.figures.steps_said}" for one in _standings(store, None)}


def _standings(store: "Store", name: str | None) -> "list[Standing]":
    """One run, or the newest of all."""
    from prime_train.operations.status import status as status_of
    from prime_train.operations.status import statuses

    return [status_of(store, name)] if name is not None else statuses(store)


def _shown(home: "Home", store: "Store", name: str | None) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from prime_train.cli import tables
    from prime_train.control_plane.wiring.embedded import UNSERVED, is_left_alone
    from prime_train.operations.run_lookup import find

    if name is not None:
        held = find(store, name)
        shown, goes_on = tables.one_run(held, store.history(held.run.run_id), store.now_s()), not held.run.is_over
    else:
        found = _standings(store, None)
        if not found:
            return "There are no runs yet. Launch one: prime-train run CONFIG"
        shown, goes_on = tables.all_runs(found), any(one.ended_s is None for one in found)
    return Group(shown, Text(), Text(UNSERVED, style="bold yellow")) if goes_on and is_left_alone(home) else shown

"""`prime-train status [RUN]`: how runs stand."""

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from prime_train.cli.home import Home
    from prime_train.cli.standing import Standing
    from prime_train.ports import Store

RUNS_MAX = 100
WATCH_S = 1.0


def status(
    run: Annotated[str | None, typer.Argument(help="A run, or the start of its id; without it, all.", show_default=False)] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on showing it, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object, or a list of all.")] = False,
) -> None:
    """Show state, step, spend and restarts."""
    import json

    from prime_train.cli.home import Home

    home = Home.of(os.environ)
    store = home.store()
    if as_json:
        found = _standings(store, run)
        print(json.dumps(found[0].row() if run is not None else [one.row() for one in found], indent=2))
    elif watch:
        _watch(home, store, run)
    else:
        from prime_train.cli.output import console as open_console

        open_console().print(_shown(home, store, run))


def _watch(home: "Home", store: "Store", run: str | None) -> None:
    import threading

    from rich.live import Live

    from prime_train.cli.output import console as open_console

    console, pause = open_console(), threading.Event()
    shown = _shown(home, store, run)
    try:
        # On a screen of its own: a terminal that is made narrower would fold what was drawn before into the scrollback.
        with Live(shown, console=console, auto_refresh=False, screen=True) if console.is_terminal else nullcontext() as live:
            while True:
                if live is not None:
                    live.update(shown, refresh=True)
                else:
                    console.print(shown)
                    console.file.flush()
                pause.wait(WATCH_S)
                shown = _shown(home, store, run)
    finally:
        if console.is_terminal:
            console.print(shown)


def _standings(store: "Store", name: str | None) -> "list[Standing]":
    """One run, or the newest `RUNS_MAX` of all."""
    from prime_train.cli.home import wall_s
    from prime_train.cli.names import find
    from prime_train.cli.standing import standing

    now_s = wall_s()
    if name is not None:
        return [standing(find(store, name), now_s)]
    held = [store.load(run.run_id) for run in store.list_runs()[:RUNS_MAX]]
    return [standing(one, now_s) for one in held if one is not None]


def _shown(home: "Home", store: "Store", name: str | None) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from prime_train.cli import tables
    from prime_train.cli.embedded import UNSERVED, is_left_alone
    from prime_train.cli.home import wall_s
    from prime_train.cli.names import find

    if name is not None:
        held = find(store, name)
        shown, goes_on = tables.one_run(held, store.history(held.run.run_id), wall_s()), not held.run.is_over
    else:
        found = _standings(store, None)
        if not found:
            return "There are no runs yet. Launch one: prime-train run CONFIG"
        shown, goes_on = tables.all_runs(found), any(one.ended_s is None for one in found)
    return Group(shown, Text(), Text(UNSERVED, style="bold yellow")) if goes_on and is_left_alone(home) else shown

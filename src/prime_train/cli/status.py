"""`prime-train status [RUN]`: show the state of runs."""

import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.arguments import seconds
from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.run_filter import RunFilter
    from prime_train.operations.status import RunList
    from prime_train.ports import Store

WATCH_S = 1.0
RUNS_MAX = 100


@dataclass(frozen=True)
class _View:
    """The selection of runs to show: one run, or the newest `runs_max` of those that match `wanted`."""

    home: "Home"
    store: "Store"
    run: str | None
    wanted: "RunFilter"
    runs_max: int

    def standings(self) -> "RunList":
        from prime_train.operations.status import RunList, statuses
        from prime_train.operations.status import status as status_of

        if self.run is not None:
            return RunList((status_of(self.store, self.run),))
        return statuses(self.store, self.wanted, runs_max=self.runs_max)


def status(
    run: Annotated[
        str | None, typer.Argument(help="A run's id, its start, or a config's name; without it, all.", show_default=False)
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only runs in this state, active or ended; may be repeated.", show_default=False)
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Only runs with this in their id or name, or a pattern: 'qwen-*'.", show_default=False)
    ] = "",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Only runs with this tag; repeated: with all of them.", show_default=False)
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DURATION", help="Only runs launched within it, such as 2d.", show_default=False)
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Archived runs too, which are left out otherwise.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most runs, newest first.")] = RUNS_MAX,
    watch: Annotated[bool, typer.Option("--watch", help="Go on showing it until the run is over; without RUN, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object, or a list of all.")] = False,
) -> None:
    """Show state, step, spend and restarts."""
    import json

    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.run_filter import RunFilter

    wanted = RunFilter(tuple(state or ()), name, tuple(tag or ()), seconds("--since", since), archived=archived)
    if run is not None and not wanted.is_empty:
        raise UsageError("a run is named, and a choice among all runs is made", fix="leave out one of them")
    home = Home.of(os.environ)
    view = _View(home, home.store(), run, wanted, limit)
    if as_json:
        rows = [one.row() for one in view.standings().runs]
        print(json.dumps(rows[0] if run is not None else rows, indent=2))
    elif watch:
        from prime_train.operations.run_lookup import find

        # The name is resolved once, because it may stand for another run later.
        _watch(replace(view, run=find(view.store, run).run.run_id) if run else view)
    else:
        from prime_train.output import console as open_console

        open_console().print(_shown(view))


def _watch(view: _View) -> None:
    from prime_train.output import console as open_console

    console = open_console()
    if console.is_terminal:
        _watch_on_screen(console, view)
    elif view.run is not None:
        _print_run(view.home, view.store, view.run)
    else:
        _print_all(console, view)


def _watch_on_screen(console: "Console", view: _View) -> None:
    from rich.live import Live

    pause = threading.Event()
    shown = _shown(view)
    try:
        # The alternate screen is used because narrowing a terminal would wrap earlier frames into the scrollback.
        with Live(shown, console=console, auto_refresh=False, screen=True) as live:
            while not _is_done(view):
                live.update(shown, refresh=True)
                pause.wait(WATCH_S)
                shown = _shown(view)
        shown = _shown(view)
    finally:
        console.print(shown)


def _is_done(view: _View) -> bool:
    """Return whether the run is over and none of its machines is paid for any more."""
    held = view.store.load(view.run) if view.run is not None else None
    return held is not None and held.run.is_over and all(attempt.ended_s is not None for attempt in held.run.attempts)


def _print_run(home: "Home", store: "Store", run_id: str) -> None:
    """Print each event of the run once, as a line. Used if the output is not a terminal."""
    from prime_train.cli.follow import await_end
    from prime_train.control_plane.wiring.embedded import UNSERVED, is_left_alone

    run = await_end(store, run_id, is_served=lambda: not is_left_alone(home), unserved=UNSERVED)
    typer.echo(f"{run_id} {run.state.value}: {run.why}")


def _print_all(console: "Console", view: _View) -> None:
    """Print all runs as a table, and then, without end, a line for each run that has changed."""
    pause = threading.Event()
    console.print(_shown(view))
    before = _lines(view)
    while True:
        console.file.flush()
        pause.wait(WATCH_S)
        now = _lines(view)
        for line in sorted(now - before):
            typer.echo(line)
        before = now


def _lines(view: _View) -> set[str]:
    return {f"{one.run} {one.state}: {one.figures.steps_said}" for one in view.standings().runs}


def _shown(view: _View) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from prime_train.cli import tables
    from prime_train.control_plane.wiring.embedded import UNSERVED, is_left_alone
    from prime_train.operations.run_lookup import find

    if view.run is not None:
        held = find(view.store, view.run)
        shown, goes_on = tables.one_run(held, view.store.history(held.run.run_id), view.store.now_s()), not held.run.is_over
    else:
        found = view.standings()
        if not found.runs:
            return _nothing(view, found.archived)
        shown, goes_on = tables.all_runs(found.runs), any(one.ended_s is None for one in found.runs)
        if found.left_out:
            shown = Group(
                shown, Text(f"{found.left_out:,} older runs are not shown; --limit {found.left_out + len(found.runs)} shows them")
            )
    return Group(shown, Text(), Text(UNSERVED, style="bold yellow")) if goes_on and is_left_alone(view.home) else shown


def _nothing(view: _View, archived: int) -> str:
    if archived:
        return f"No run matches but {archived:,} in the archive. To see them, add --archived."
    if view.wanted.is_empty:
        return "There are no runs yet. Launch one: prime-train run CONFIG"
    return "No run matches these options."

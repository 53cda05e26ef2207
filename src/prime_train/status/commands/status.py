"""`prime-train status [RUN]`: show the state of runs."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.runs.lookup import find
from prime_train.terminal.arguments import seconds
from prime_train.text.invocations import worded

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from prime_train.app.run_access import RunFiles
    from prime_train.runs.filter import RunFilter
    from prime_train.runs.store import Store
    from prime_train.status.status import RunList

WATCH_S = 1.0
RUNS_MAX = 100
UNREADABLE_MAX = 10


@dataclass(frozen=True)
class _View:
    """Which runs to show: one run, or the newest `runs_max` of those that match `wanted`."""

    store: "Store"
    files: "RunFiles"
    is_served: Callable[[], bool]
    run: str | None
    wanted: "RunFilter"
    runs_max: int

    def statuses_now(self) -> "RunList":
        from prime_train.status.status import RunList, run_now, statuses

        if self.run is not None:
            return RunList((run_now(self.store, self.files, self.run),))
        return statuses(self.store, self.wanted, runs_max=self.runs_max)


def status(
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run's id, start of the id, or config's name; by default all runs.", show_default=False
        ),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            help="Show only runs in this state, or active or ended; may be repeated.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--name",
            help="Show only runs whose id or name contains this or matches a pattern: 'qwen-*'.",
            show_default=False,
        ),
    ] = "",
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            help="Show only runs with this tag; if repeated, with all of the tags.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DURATION",
            help="Show only runs launched within this time, such as 2d.",
            show_default=False,
        ),
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Also show archived runs.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Maximum number of runs, newest first.")
    ] = RUNS_MAX,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep updating until the run ends; without RUN, until Ctrl-C.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: one object, or a list of all.")
    ] = False,
) -> None:
    """Show state, step, spend and restarts."""
    from prime_train.app.home import Home
    from prime_train.runs.filter import RunFilter
    from prime_train.terminal.console import console as open_console

    wanted = RunFilter(
        tuple(state or ()), name, tuple(tag or ()), seconds("--since", since), archived=archived
    )
    if run is not None and not wanted.is_empty:
        raise UsageError(
            "RUN cannot be combined with options that filter all runs", fix="leave out one of them"
        )
    home = Home.of(os.environ)
    view = _View(home.store(), home.files(), lambda: home.served.is_served, run, wanted, limit)
    if as_json:
        found = view.statuses_now()
        rows = [one.row() for one in found.runs]
        print(json.dumps(rows[0] if run is not None else rows, indent=2))
        for text in _unreadable(found):
            typer.echo(f"warning: {text}", err=True)
    elif watch:
        # The name is resolved once, because it may stand for another run later.
        _watch(replace(view, run=find(view.store, run).run.run_id) if run else view)
    else:
        open_console().print(_shown(view))


def _watch(view: _View) -> None:
    from prime_train.terminal.console import console as open_console

    console = open_console()
    if console.is_terminal:
        _watch_on_screen(console, view)
    elif view.run is not None:
        _print_run(view, view.run)
    else:
        _print_all(console, view)


def _watch_on_screen(console: "Console", view: _View) -> None:
    from rich.live import Live

    pause = threading.Event()
    shown = _shown(view)
    try:
        # The alternate screen is used because narrowing a terminal would wrap earlier frames into the
        # scrollback.
        with Live(shown, console=console, auto_refresh=False, screen=True) as live:
            while not _is_done(view):
                live.update(shown, refresh=True)
                pause.wait(WATCH_S)
                shown = _shown(view)
        shown = _shown(view)
    finally:
        console.print(shown)


def _is_done(view: _View) -> bool:
    from prime_train.status.status import is_settled

    return view.run is not None and is_settled(view.store, view.run)


def _print_run(view: _View, run_id: str) -> None:
    """Print each event of the run once, as a line. Used if the output is not a terminal."""
    from prime_train.terminal.history import await_end

    run = await_end(view.store, view.is_served, run_id)
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
    return {f"{one.run} {one.state}: {one.figures.steps_text}" for one in view.statuses_now().runs}


def _shown(view: _View) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from prime_train.app.embedded import UNSERVED
    from prime_train.providers.down import down
    from prime_train.terminal import tables

    found = view.statuses_now()
    if view.run is not None:
        shown = tables.one_run(found.runs[0], view.store.history(found.runs[0].run))
    else:
        if not found.runs and not found.unreadable:
            return _nothing(view, found.archived)
        shown = tables.all_runs(found.runs)
        if found.left_out:
            shown = Group(
                shown,
                Text(
                    f"{found.left_out:,} older runs are not shown; --limit "
                    f"{found.left_out + len(found.runs)} shows them"
                ),
            )
    warnings = (
        [f"{text[0].upper()}{text[1:]}." for text in down(view.store).values()] if found.goes_on else []
    )
    warnings += _unreadable(found)
    if found.goes_on and not view.is_served():  # no machine is replaced then
        warnings.append(worded(UNSERVED))
    return (
        Group(shown, Text(), *(Text(text, style="bold yellow") for text in warnings)) if warnings else shown
    )


def _unreadable(found: "RunList") -> list[str]:
    """Return what cannot be read, as lines; of many, the first ones."""
    from prime_train.runs.unreadable import FIX

    lines = [f"{one}." for one in found.unreadable[:UNREADABLE_MAX]]
    more = len(found.unreadable) - len(lines)
    lines += [f"{more:,} more stored values cannot be read."] if more else []
    return [*lines, f"To read what cannot be read, {FIX}."] if lines else []


def _nothing(view: _View, archived: int) -> str:
    if archived:
        return f"Only {archived:,} archived runs match. To see them, add --archived."
    if view.wanted.is_empty:
        return "There are no runs yet. Launch one: prime-train run CONFIG"
    return "No run matches these options."

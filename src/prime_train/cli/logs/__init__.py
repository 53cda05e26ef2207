"""`prime-train logs RUN`: show a run's history and its trainer's log."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.arguments import AsJson, print_json, seconds
from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_train.cli.logs.stream import LogStream
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import HistoryEvent
    from prime_train.operations.run_logs.log_tail import Tail
    from prime_train.operations.run_logs.logs import LogChoice
    from prime_train.ports import RunRecord


def logs(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run is over.")] = False,
    lines: Annotated[
        int | None,
        typer.Option(
            min=0, max=100_000, help="Lines of the trainer's log; by default 40, with --since all of that time.", show_default=False
        ),
    ] = None,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, metavar="N", help="Of that attempt alone.", show_default=False)] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DURATION", help="What was written within it, such as 10m.", show_default=False)
    ] = None,
    grep: Annotated[str, typer.Option("--grep", metavar="TEXT", help="Only lines with this text.", show_default=False)] = "",
    regexp: Annotated[bool, typer.Option("-E", "--regexp", help="The text of --grep is a regular expression (RE2).")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run's history and log.

    What happened to the run, then the end of its trainer's log.
    """
    from prime_train.cli.logs.stream import LogStream
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.machine import is_elsewhere
    from prime_train.operations.run_logs.log_tail import Tail
    from prime_train.operations.run_logs.logs import LogChoice
    from prime_train.operations.run_lookup import find

    if follow and attempt is not None:
        raise UsageError("--attempt is about what was written, --follow about what comes", fix="leave out one of them")
    if follow and as_json:
        raise UsageError("--json prints one record, --follow goes on", fix="leave out one of them")
    choice = LogChoice(lines, attempt, seconds("--since", since), grep, is_pattern=regexp)
    home = Home.of(os.environ)
    held = find(home.store(), run)
    if as_json:
        print_json(_record(home, held, choice))
        return
    _print_history(home, held, home.store().history(held.run.run_id), choice)
    # When following a remote log, its past is shown over the same connection, so that nothing in between is missed.
    tail = Tail(None) if follow and is_elsewhere(held.run) else _show(home, held, choice)
    if follow:
        _follow(home, held, LogStream(home, held.run.run_id, tail, choice), choice)


def history_line(after_s: int, attempt: int, kind: str, text: str) -> str:
    """Format one line of history for an event `after_s` seconds after the launch."""
    from prime_train.core.text.formatting import span

    return f"+{span(after_s):<12} e{attempt:<3} {kind.replace('_', ' '):<14} {text}"


def _record(home: "Home", held: "RunRecord", choice: "LogChoice") -> dict[str, object]:
    from prime_train.operations.run_logs.logs import history_of, log_end

    store = home.store()
    history = history_of(store.history(held.run.run_id), choice, store.now_s())
    end = log_end(home, held, choice, lambda text: typer.echo(text, err=True))
    return {
        "run": held.run.run_id,
        "history": [{"at_s": one.at_s, "attempt": one.attempt, "kind": one.kind, "step": one.step, "text": one.text} for one in history],
        "log": {"name": end.name, "lines": end.text.splitlines()},
    }


def _print_history(home: "Home", held: "RunRecord", history: "Sequence[HistoryEvent]", choice: "LogChoice") -> None:
    from prime_train.operations.run_logs.logs import history_of

    for line in history_of(history, choice, home.store().now_s()):
        typer.echo(history_line(line.at_s - held.run.created_s, line.attempt, line.kind, line.text))


def _show(home: "Home", held: "RunRecord", choice: "LogChoice") -> "Tail":
    """Print the end of the run's newest log, and return its reader."""
    from prime_train.operations.run_logs.logs import log_end

    end = log_end(home, held, choice, lambda text: typer.echo(text, err=True))
    typer.echo(f"--- {end.name}" if end.name else "--- no log: no machine holds one, and none was kept as evidence")
    if end.text:
        typer.echo(end.text.removesuffix("\n"))
    return end.tail


def _follow(home: "Home", held: "RunRecord", stream: "LogStream", choice: "LogChoice") -> None:
    from prime_train.operations.run_lookup import find

    store, run_id = home.store(), held.run.run_id
    told = len(store.history(run_id))
    for text in stream.pieces():
        typer.echo(text, nl=False)
        # Read before the history, so that the last event is printed too.
        over = find(store, run_id).run.is_over
        history = store.history(run_id)
        _print_history(home, held, history[told:], choice)
        told = len(history)
        if over:
            typer.echo(stream.rest(), nl=False)
            return

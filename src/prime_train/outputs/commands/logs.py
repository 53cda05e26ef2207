"""`prime-train logs RUN`: show a run's history and its trainer's log."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.runs.lookup import find
from prime_train.terminal.arguments import AsJson, print_json, seconds

if TYPE_CHECKING:
    from prime_train.app.run_access import RunFiles
    from prime_train.outputs.logs.log_stream import LogStream
    from prime_train.outputs.logs.logs import LogEnd, LogFilter
    from prime_train.runs.run import HistoryEvent
    from prime_train.runs.store import RunRecord, Store


def logs(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Follow the log until the run ends.")
    ] = False,
    lines: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100_000,
            help="Number of lines of the trainer's log; by default 40, or with --since all of that time.",
            show_default=False,
        ),
    ] = None,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", min=1, metavar="N", help="Show only this attempt.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DURATION",
            help="Show only what was written within this time, such as 10m.",
            show_default=False,
        ),
    ] = None,
    grep: Annotated[
        str,
        typer.Option(
            "--grep", metavar="TEXT", help="Show only lines that contain this text.", show_default=False
        ),
    ] = "",
    regexp: Annotated[
        bool, typer.Option("-E", "--regexp", help="Treat the text of --grep as a regular expression (RE2).")
    ] = False,
    component: Annotated[
        str,
        typer.Option(
            "--component",
            metavar="NAME",
            help="Show the log of this part of the trainer, such as inference, from the run's machine.",
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show a run's history and log.

    Prints the events of the run, then the end of its trainer's log.
    """
    from prime_train.app.home import Home
    from prime_train.outputs.logs.component_log import component_log
    from prime_train.outputs.logs.log_stream import log_followed
    from prime_train.outputs.logs.logs import LogFilter, log_end

    if follow and attempt is not None:
        raise UsageError("--attempt and --follow cannot be combined", fix="leave out one of them")
    if follow and as_json:
        raise UsageError("--json and --follow cannot be combined", fix="leave out one of them")
    log_filter = LogFilter(lines, attempt, seconds("--since", since), grep, is_pattern=regexp)
    home = Home.of(os.environ)
    store, files = home.store(), home.files()
    record = find(store, run)
    if component:
        if follow or as_json or attempt is not None or since is not None or grep:
            raise UsageError("--component can be combined with --lines only", fix="leave out the others")
        _show(component_log(files.machines, record, component, log_filter.lines_max, _warn))
        return
    if as_json:
        print_json(_record(store, files, record, log_filter))
        return
    history = store.history(record.run.run_id)
    _print_history(store, record, history, log_filter)
    if not follow:
        _show(log_end(store, files, record, log_filter, _warn))
        return
    end, stream = log_followed(store, files, record, log_filter, _warn)
    if end is not None:
        _show(end)
    _follow(store, record, stream, log_filter, printed=len(history))


def _warn(text: str) -> None:
    typer.echo(text, err=True)


def _record(
    store: "Store", files: "RunFiles", record: "RunRecord", log_filter: "LogFilter"
) -> dict[str, object]:
    from prime_train.outputs.logs.logs import history_of, log_end

    history = history_of(store.history(record.run.run_id), log_filter, store.now_s())
    end = log_end(store, files, record, log_filter, _warn)
    return {
        "run": record.run.run_id,
        "history": [
            {"at_s": one.at_s, "attempt": one.attempt, "kind": one.kind, "step": one.step, "text": one.text}
            for one in history
        ],
        "log": {"name": end.name, "lines": end.text.splitlines()},
    }


def _print_history(
    store: "Store", record: "RunRecord", history: "Sequence[HistoryEvent]", log_filter: "LogFilter"
) -> None:
    from prime_train.outputs.logs.logs import history_of
    from prime_train.terminal.history import history_line

    for line in history_of(history, log_filter, store.now_s()):
        typer.echo(history_line(line.at_s - record.run.created_s, line.attempt, line.kind, line.text))


def _show(end: "LogEnd") -> None:
    typer.echo(
        f"--- {end.name}" if end.name else "--- no log: no machine has one, and none was saved as evidence"
    )
    if end.text:
        typer.echo(end.text.removesuffix("\n"))


def _follow(
    store: "Store", record: "RunRecord", stream: "LogStream", log_filter: "LogFilter", *, printed: int
) -> None:
    """Print the stream, and the events of the run after the first `printed` ones, until the run is over."""
    for text in stream.pieces():
        typer.echo(text, nl=False)
        history = store.history(record.run.run_id)
        _print_history(store, record, history[printed:], log_filter)
        printed = len(history)

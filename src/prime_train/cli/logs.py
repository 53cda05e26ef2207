"""`prime-train logs RUN`: what happened, and what the trainer printed."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prime_train.cli.home import Home
    from prime_train.cli.tails import Tail
    from prime_train.ports import Held

FOLLOW_S = 0.5


def logs(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run is over.")] = False,
    lines: Annotated[int, typer.Option(min=0, max=100_000, help="Lines of the trainer's log.")] = 40,
) -> None:
    """Show a run's history and log.

    What happened to the run, then the end of its trainer's log.
    """
    from prime_train.cli.home import Home
    from prime_train.cli.names import find

    home = Home.of(os.environ)
    store = home.store()
    held = find(store, run)
    for line in store.history(held.run.run_id):
        typer.echo(history_line(line.at_s - held.run.created_s, line.epoch, line.kind, line.text))
    tail = _tail(home, held, lines)
    if follow:
        _follow(home, held.run.run_id, tail)


def history_line(after_s: int, epoch: int, kind: str, text: str) -> str:
    """One line of history, `after_s` seconds after the launch."""
    from prime_train.cli.amounts import span

    return f"+{span(after_s):<12} e{epoch:<3} {kind.replace('_', ' '):<14} {text}"


def _tail(home: "Home", held: "Held", lines: int) -> "Tail":
    """Prints the end of the newest log there is: from the pod's own disk, else from the evidence in the bucket."""
    from prime_train.cli.tails import Tail, kept_log, log_on_disk

    path = log_on_disk(home, held.run)
    tail = Tail(path)
    name, text = (str(path), tail.last(lines)) if path is not None else kept_log(home, held.run, lines)
    typer.echo(f"--- {name}" if name else "--- no log: no machine holds one, and none was kept as evidence")
    if text:
        typer.echo(text)
    return tail


def _follow(home: "Home", run_id: str, tail: "Tail") -> None:
    import threading

    from prime_train.cli.names import find
    from prime_train.cli.tails import log_on_disk

    store, pause = home.store(), threading.Event()
    told = len(store.history(run_id))
    while True:
        held = find(store, run_id)
        tail.move_to(log_on_disk(home, held.run))
        typer.echo(tail.more(), nl=False)
        history = store.history(run_id)
        for line in history[told:]:
            typer.echo(history_line(line.at_s - held.run.created_s, line.epoch, line.kind, line.text))
        told = len(history)
        if held.run.is_over:
            return
        pause.wait(FOLLOW_S)

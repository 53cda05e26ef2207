"""The events of a run, line by line, until it is over."""

from collections.abc import Callable

import typer

from prime_train.app.embedded import UNSERVED
from prime_train.app.follow import RunUpdate, updates
from prime_train.runs.run import Run, RunState
from prime_train.runs.store import Store
from prime_train.status.run_status import RunFacts, status_of
from prime_train.text.formatting import span
from prime_train.text.invocations import worded

STEPS_S = 10
SERVED_S = 10


class _Served:
    """Checks every `SERVED_S` seconds whether the run is served, and prints a message when that changes."""

    def __init__(self, ask: Callable[[], bool], now_s: int) -> None:
        self._ask, self._checked_s, self._was = ask, now_s, True

    def look(self, now_s: int) -> None:
        if now_s < self._checked_s + SERVED_S:
            return
        self._checked_s, before, self._was = now_s, self._was, self._ask()
        if self._was != before:
            typer.echo("served again" if self._was else worded(UNSERVED), err=True)


class _Steps:
    """Prints a line for the steps of a run that trains, every `STEPS_S` seconds if they have changed."""

    def __init__(self) -> None:
        self._printed_s, self._printed = 0, ""

    def look(self, update: RunUpdate) -> None:
        run, now_s = update.record.run, update.now_s
        if run.state is not RunState.TRAINING or now_s < self._printed_s + STEPS_S:
            return
        one = status_of(RunFacts(update.record, now_s))
        before, self._printed, self._printed_s = self._printed, one.figures.steps_text, now_s
        if self._printed != before:
            typer.echo(
                history_line(now_s - run.created_s, one.attempt, "step", f"{self._printed}, {one.money}")
            )


def await_end(store: Store, is_served: Callable[[], bool], run_id: str) -> Run:
    """Print the run's events until it is over and none of its machines is paid for any more, then return it.
    Prints a message when the run is no longer served.
    """
    steps, served = _Steps(), _Served(is_served, store.now_s())
    for update in updates(store, run_id):
        run = update.record.run
        for line in update.events:
            typer.echo(history_line(line.at_s - run.created_s, line.attempt, line.kind, line.text))
        steps.look(update)
        served.look(update.now_s)
    return run


def history_line(after_s: int, attempt: int, kind: str, text: str) -> str:
    """Format one line of history for an event `after_s` seconds after the launch."""
    return f"+{span(after_s):<12} e{attempt:<3} {kind.replace('_', ' '):<14} {text}"

"""Follow a launched run to its end, printing its events line by line."""

import logging
from collections.abc import Callable

import typer

from prime_train.cli.logs import history_line
from prime_train.control_plane.wiring.embedded import UNSERVED
from prime_train.control_plane.wiring.home import Home
from prime_train.core.exit_codes import Exit
from prime_train.core.run import Run, RunState
from prime_train.core.text.commands import worded
from prime_train.dashboard import served_here
from prime_train.operations.follow import RunUpdate, served_meanwhile, updates
from prime_train.ports import Store
from prime_train.reports.run_status import RunFacts, status_of

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
            typer.echo(history_line(now_s - run.created_s, one.attempt, "step", f"{self._printed}, {one.money}"))


def follow(home: Home, run_id: str) -> Exit:
    """Follow the run until it is over and its machines are terminated; return OK only if it succeeded. If no control plane serves the home,
    this process serves it meanwhile."""
    # Alerts are not logged, because their events are printed as history already.
    logging.getLogger("prime_train.alerts").addHandler(logging.NullHandler())
    with served_meanwhile(home, served_here) as is_here:
        elsewhere = home.served.last if not is_here else None
        at = f" at {elsewhere.url}" if elsewhere is not None else ""
        acts = "no control plane is running: this process acts as the control plane until the run ends"
        typer.echo(acts if is_here else f"the control plane{at} watches the run")
        try:
            run = await_end(home.store(), lambda: home.served.is_served, run_id)
        except KeyboardInterrupt:
            by = ". It needs a control plane: prime-train serve" if is_here else f", watched by the control plane{at}"
            typer.echo(f"{run_id} continues{by}. To end it: prime-train stop {run_id}", err=True)
            raise
    typer.echo(f"{run_id} {run.state.value}: {run.why}")
    return Exit.OK if run.state is RunState.SUCCEEDED else Exit.FINDINGS


def await_end(store: Store, is_served: Callable[[], bool], run_id: str) -> Run:
    """Print the run's events until it is over and none of its machines is paid for any more, then return it. Prints a message when the run
    is no longer served."""
    steps, served = _Steps(), _Served(is_served, store.now_s())
    for update in updates(store, run_id):
        run = update.record.run
        for line in update.events:
            typer.echo(history_line(line.at_s - run.created_s, line.attempt, line.kind, line.text))
        steps.look(update)
        served.look(update.now_s)
    return run

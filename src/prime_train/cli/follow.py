"""Follow a launched run to its end, printing its events line by line."""

import contextlib
import logging
import threading
from collections.abc import Callable

import typer

from prime_train.cli.logs import history_line
from prime_train.control_plane.wiring.embedded import control_plane
from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.providers import STORE
from prime_train.core.exit_codes import Exit
from prime_train.core.run import Run, RunState
from prime_train.operations.run_lookup import find
from prime_train.ports import Store
from prime_train.reports.run_status import standing

LOOK_S = 0.5
STEPS_S = 10
SERVED_S = 10


class _Served:
    """Checks every `SERVED_S` seconds whether the run is served, and prints a message when that changes."""

    def __init__(self, ask: Callable[[], bool], unserved: str, now_s: int) -> None:
        self._ask, self._unserved, self._asked_s, self._was = ask, unserved, now_s, True

    def look(self, now_s: int) -> None:
        if now_s < self._asked_s + SERVED_S:
            return
        self._asked_s, before, self._was = now_s, self._was, self._ask()
        if self._was != before:
            typer.echo("served again" if self._was else self._unserved, err=True)


def follow(home: Home, run_id: str) -> Exit:
    """Follow the run until it is over and its machines are terminated; return OK only if it succeeded. If no control plane serves the home,
    this process serves it meanwhile."""
    from prime_train.dashboard import served_here

    serving = home.serving()
    # Alerts are not logged, because their events are printed as history already.
    logging.getLogger("prime_train.alerts").addHandler(logging.NullHandler())
    typer.echo(f"followed at {serving.url}" if serving else "no control plane serves: this process is it until the run is over")
    try:
        with contextlib.nullcontext() if serving else control_plane(home, pages=served_here(home)):
            run = await_end(home.store(), run_id, is_served=lambda: not serving or home.serving() is not None, unserved=_unserved(home))
    except KeyboardInterrupt:
        by = f", looked after by {serving.url}" if serving else ". Needed for it: prime-train serve"
        typer.echo(f"{run_id} goes on{by}. To end it: prime-train stop {run_id}", err=True)
        raise
    typer.echo(f"{run_id} {run.state.value}: {run.why}")
    return Exit.OK if run.state is RunState.SUCCEEDED else Exit.FINDINGS


def _unserved(home: Home) -> str:
    if home.environment.get(STORE):
        return "its control plane does not answer any more; see to it where it runs"
    return "nobody serves it any more; start, and leave running: prime-train serve"


def await_end(store: Store, run_id: str, *, is_served: Callable[[], bool], unserved: str) -> Run:
    """Print the run's events until it is over and none of its machines is paid for any more, then return it. Prints `unserved` when the run
    is no longer served."""
    pause = threading.Event()
    told, stepped_s, stepped, served = 0, 0, "", _Served(is_served, unserved, store.now_s())
    while True:
        held = find(store, run_id)
        history = store.history(run_id)
        for line in history[told:]:
            typer.echo(history_line(line.at_s - held.run.created_s, line.attempt, line.kind, line.text))
        now_s = store.now_s()
        if held.run.state is RunState.TRAINING and now_s >= stepped_s + STEPS_S:
            one = standing(held, now_s)
            before, stepped, stepped_s = stepped, one.figures.steps_said, now_s
            if stepped != before:
                typer.echo(history_line(now_s - held.run.created_s, one.attempt, "step", f"{stepped}, {one.money}"))
        told = len(history)
        served.look(now_s)
        if held.run.is_over and all(a.ended_s is not None for a in held.run.attempts):
            return held.run
        pause.wait(LOOK_S)

"""`prime-train gha status`: report the state of runs in the job summary, and update each run's deployment and comment."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.ports import RunRecord, Store

RUNS_MAX = 50
RUNS_LOADED_MAX = 500


def status(
    run: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_RUN", help="The run's id; none: all that are open.")] = "",
) -> Exit:
    """Say how runs stand."""
    from prime_train.actions import control_plane as plane
    from prime_train.actions.job import Job, hide
    from prime_train.actions.publish import show, summarize
    from prime_train.reports.run_status import standing

    hide(os.environ)
    job, home = Job.of(os.environ), plane.home()
    store = home.store()
    found = _meant(store, run, [one.run_id for one in plane.own(home)])
    for held in found:
        show(job, store, held)
        summarize(job, store, held)
        typer.echo(f"{held.run.run_id} is {held.run.state.value}")
    if not found:
        job.summary("No run is open.")
    rows = [standing(held, store.now_s()).row() for held in found]
    job.output(state=found[0].run.state.value if run and found else "", runs=json.dumps(rows))
    return Exit.OK


def _meant(store: "Store", name: str, own: "list[str]") -> "list[RunRecord]":
    """Return the run named `name`, or all active runs if `name` is empty; only runs in `own`, those of this repository, count. Raises
    UsageError unless exactly one run matches a given name."""
    started = [run_id for run_id in own if run_id == name] or [run_id for run_id in own if run_id.startswith(name)]
    if name and len(started) != 1:
        raise UsageError(f"{len(started)} runs of this repository are called {name[:50]}", fix="write the run's id")
    held = [one for one in map(store.load, started[:RUNS_LOADED_MAX]) if one is not None]
    return held if name else [one for one in held if not one.run.is_over][:RUNS_MAX]

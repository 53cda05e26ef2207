"""`prime-train gha status`: how runs stand, on the job's page, and shown anew where each was asked for."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.exits import Exit

if TYPE_CHECKING:
    from prime_train.ports import Held, Store

RUNS_MAX = 50


def status(
    run: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_RUN", help="The run's id; none: all that are open.")] = "",
) -> Exit:
    """Say how runs stand."""
    from prime_train.cli.gha import plane
    from prime_train.cli.gha.job import Job, hide
    from prime_train.cli.gha.showing import show, summarize
    from prime_train.cli.home import wall_s
    from prime_train.cli.standing import standing

    hide(os.environ)
    job, store = Job.of(os.environ), plane.home().store()
    found = _meant(store, run)
    for held in found:
        show(job, store, held)
        summarize(job, held)
        typer.echo(f"{held.run.run_id} is {held.run.state.value}")
    if not found:
        job.summary("No run is open.")
    rows = [standing(held, wall_s()).row() for held in found]
    job.output(state=found[0].run.state.value if run and found else "", runs=json.dumps(rows))
    return Exit.OK


def _meant(store: "Store", name: str) -> "list[Held]":
    from prime_train.cli.names import find

    if name:
        return [find(store, name)]
    held = [store.load(run.run_id) for run in store.list_runs() if not run.is_over]
    return [one for one in held if one is not None][:RUNS_MAX]

"""`prime-train gha watch`: one look at every run. Safe beside any other watcher, and after any number of looks that were dropped."""

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.exits import Exit

if TYPE_CHECKING:
    from prime_train.cli.home import Home
    from prime_train.reconcile import Swept


def watch(
    stale_minutes: Annotated[
        float, typer.Option(envvar="PRIME_TRAIN_INPUT_STALE_MINUTES", min=1, help="Warn where the sweep before was longer ago than that.")
    ] = 90,
    minutes: Annotated[
        float, typer.Option(envvar="PRIME_TRAIN_INPUT_MINUTES", min=0, max=300, help="Go on for so long while a machine comes up.")
    ] = 0,
) -> Exit:
    """Look at every run once, and take the next step where one is due."""
    from prime_train.cli.gha import plane
    from prime_train.cli.gha.job import Job, hide
    from prime_train.cli.home import wall_s

    hide(os.environ)
    job, home = Job.of(os.environ), plane.home()
    before_s = home.store().watch().swept_s
    stale = before_s is not None and wall_s() - before_s > stale_minutes * 60
    if stale:
        job.warning(f"the sweep before this one was {(wall_s() - (before_s or 0)) // 60} minutes ago: scheduled jobs are late or dropped")
    swept = plane.look(home, waits=True)
    looks, steps = 1 + (_go_on(home, time.monotonic() + minutes * 60) if minutes else 0), swept.steps
    job.output(looked_at=len(swept.looked_at), steps=steps, blind=swept.blind is not None, stale=stale)
    job.summary(_words(home, swept, looks))
    if swept.blind is not None:
        job.warning(f"blind: {swept.blind}; nothing was taken down")
    if swept.provider_error is not None:
        job.warning(f"the provider can not be asked: {swept.provider_error}")
        return Exit.OUTSIDE_FAILED
    return Exit.OK


def _go_on(home: "Home", until_s: float) -> int:
    """More looks while a machine comes up, so that it does not stand idle until the next job. How many."""
    from prime_train.cli.gha import plane

    looks = 0
    while time.monotonic() < until_s and plane.is_coming_up(home.store().list_runs()):
        plane.pause()
        plane.look(home, waits=True)
        looks += 1
    return looks


def _words(home: "Home", swept: "Swept", looks: int) -> str:
    from prime_train.cli.home import wall_s
    from prime_train.told import headline
    from prime_train.told.markdown import code, plain, table

    rows = []
    for run_id in swept.looked_at:
        held = home.store().load(run_id)
        if held is not None:
            rows.append((code(run_id), plain(headline(held.run, held.lease, wall_s()))))
    head = f"### Watched: {len(swept.looked_at)} runs were due, {swept.steps} steps" + (f", {looks} looks" if looks > 1 else "")
    return "\n".join([head, "", *(table(("run", "now"), rows) if rows else [])]) + "\n"

"""`prime-train gha watch`: one sweep over all runs. It is safe beside other watchers, and after any number of skipped scheduled jobs."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_train.actions.job import Job
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import Run

RUNS_SHOWN_MAX = 20
ENDED_S = 86_400
TEXT_CHARS_MAX = 200
STALE_S = 45 * 60
"""Seconds without news in W&B before a run counts as silent. W&B has been observed to lag healthy runs by 20 to 30 minutes."""
SILENT_SHOWN_MAX = 10
"""GitHub shows at most this many warnings per step."""


def watch(
    stale_minutes: Annotated[
        float, typer.Option(envvar="PRIME_TRAIN_INPUT_STALE_MINUTES", min=1, help="Warn where the sweep before was longer ago than that.")
    ] = 90,
    minutes: Annotated[
        float, typer.Option(envvar="PRIME_TRAIN_INPUT_MINUTES", min=0, max=300, help="Go on for so long while a machine comes or goes.")
    ] = 0,
    wandb: Annotated[
        str, typer.Option(envvar="PRIME_TRAIN_INPUT_WANDB", metavar="ENTITY/PROJECT", help="Tell which runs of W&B have fallen silent.")
    ] = "",
) -> Exit:
    """Look at every run once, and take the next step where one is due.

    Runs that only W&B knows are told of, and nothing is done to them."""
    from prime_train.actions import control_plane as plane
    from prime_train.actions.job import Job, hide

    hide(os.environ)
    job, home = Job.of(os.environ), plane.home()
    store = home.store()
    before_s, began_s = store.watch().swept_s, store.now_s()
    stale = before_s is not None and began_s - before_s > stale_minutes * 60
    if stale:
        job.warning(f"the sweep before this one was {(began_s - (before_s or 0)) // 60} minutes ago: scheduled jobs are late or dropped")
    looks = plane.looks(home, minutes=minutes)
    swept, seen = looks[-1], list(dict.fromkeys(run_id for one in looks for run_id in one.looked_at))
    steps = sum(one.steps for one in looks)
    job.output(looked_at=len(seen), steps=steps, blind=swept.blind is not None, stale=stale)
    mine = plane.own(home)
    job.summary(_words(home, seen, [run.run_id for run in mine], began_s))
    _show(job, home, mine)
    if wandb.strip():
        _tell_of_silent(job, home, wandb)
    if swept.blind is not None:
        job.warning(f"blind: {swept.blind}; nothing was taken down")
    if swept.provider_error is not None:
        job.warning(f"the provider cannot be asked: {swept.provider_error}")
        return Exit.OUTSIDE_FAILED
    return Exit.OK


def _tell_of_silent(job: "Job", home: "Home", where: str) -> None:
    """Warn of runs of the W&B project `where` that have been silent for `STALE_S` and that no watcher here looks after. If W&B cannot be
    queried, only a warning says so: the sweep is valid without it."""
    from prime_train.operations.stale_runs import Place, asked, find_stale, told
    from prime_train.ports import OutsideError
    from prime_train.reports.markdown import one_line, plain

    now_s, place = home.store().now_s(), Place.of(where)
    try:
        stale = find_stale(home, asked(home), place, now_s, STALE_S)
    except OutsideError as error:
        job.warning(f"W&B cannot be asked which runs of {where} have fallen silent: {error}")
        return
    job.output(silent=len(stale))
    for one in stale[:SILENT_SHOWN_MAX]:
        job.warning("\n".join(one_line(line) for line in told(one, now_s).splitlines()))
    if stale:
        said = "".join(f"1. {plain(told(one, now_s))}\n" for one in stale)
        job.summary(f"### {len(stale)} of {plain(where)} fell silent, by W&B's word alone\n\n{said}")


def _show(job: "Job", home: "Home", runs: "Sequence[Run]") -> None:
    """Update GitHub for active runs and for those that ended within `ENDED_S`, because other watchers may lack access to GitHub."""
    from prime_train.actions.publish import show

    store = home.store()
    lately = [run for run in runs if run.ended_s is None or run.ended_s > store.now_s() - ENDED_S]
    for run in lately[:RUNS_SHOWN_MAX]:
        held = store.load(run.run_id)
        if held is not None:
            show(job, store, held)


def _words(home: "Home", looked_at: "Sequence[str]", own: "Sequence[str]", began_s: int) -> str:
    """Return Markdown on the runs that were swept: the state of this repository's runs and their events since `began_s`. Runs of other
    repositories are only counted."""
    from prime_train.core.text.redaction import masked
    from prime_train.reports.markdown import code, cut, plain, table
    from prime_train.reports.pull_request import headline

    store, seen = home.store(), [run_id for run_id in looked_at if run_id in own]
    held = [one for one in map(store.load, seen[:RUNS_SHOWN_MAX]) if one is not None]
    rows = [(code(one.run.run_id), plain(headline(one.run, one.lease, store.now_s()))) for one in held]
    lines = [
        f"### Watched: {len(looked_at)} {'run was' if len(looked_at) == 1 else 'runs were'} due",
        "",
        *(table(("run", "now"), rows) if rows else []),
    ]
    for one in held:
        happened = [plain(cut(masked(line.text), TEXT_CHARS_MAX)) for line in store.history(one.run.run_id) if line.at_s >= began_s]
        lines += ["", f"{code(one.run.run_id)}:", "", *(f"1. {said}" for said in happened)] if happened else []
    return "\n".join(lines) + "\n"

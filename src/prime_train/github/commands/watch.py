"""`prime-train gha watch`: one sweep over all runs. It is safe beside other watchers, and after any number of
skipped scheduled jobs.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import ExternalError
from prime_train.exit_codes import Exit
from prime_train.github.commands.job import Job, annotated, job_environment
from prime_train.text.markdown import code, cut, one_line, plain, table
from prime_train.text.redaction import redacted

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.github.runs import SweptRun


TEXT_CHARS_MAX = 200
SILENT_SHOWN_MAX = 10
"""Maximum number of warnings; GitHub shows no more per step."""


@annotated
def watch(
    stale_minutes: Annotated[
        float,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_STALE_MINUTES",
            min=1,
            help="Warn if the previous sweep was more minutes ago than this.",
        ),
    ] = 90,
    minutes: Annotated[
        float,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_MINUTES",
            min=0,
            max=300,
            help="Maximum minutes to wait while machines start or end.",
        ),
    ] = 0,
    wandb: Annotated[
        str,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_WANDB",
            metavar="ENTITY/PROJECT",
            help="List the W&B runs that have fallen silent.",
        ),
    ] = "",
) -> Exit:
    """Check every run once, and take the next step where one is due.

    Runs that only W&B knows are reported, and nothing is done to them."""
    from prime_train.github.commands.printer import printer
    from prime_train.github.commands.publish import show
    from prime_train.github.job_home import job_home, unwatched
    from prime_train.github.runs import shown_runs, swept_runs
    from prime_train.watch.loop import sweep_while_moving

    environment = job_environment(os.environ)
    job, home = Job.of(environment), job_home(environment)
    report = sweep_while_moving(home.watching(printer(home, job.repository), waits=True), minutes=minutes)
    stale = report.is_late(stale_minutes * 60)
    if stale:
        job.warning(
            f"the sweep before this one was {(report.age_s or 0) // 60} minutes ago: scheduled jobs are late "
            "or dropped"
        )
    result = report.last
    job.output(
        looked_at=len(report.looked_at), steps=report.steps, blind=result.blind is not None, stale=stale
    )
    job.summary(_words(swept_runs(home, job.repository, report), len(report.looked_at), home.store().now_s()))
    for record in shown_runs(home, job.repository):
        show(job, home, record)
    if wandb.strip():
        _report_silent_runs(job, home, wandb)
    if unwatched(home):
        job.warning(unwatched(home))
    if result.blind is not None:
        job.warning(f"missing heartbeats prove nothing now: {result.blind}; no machine was terminated")
    if result.provider_error is not None:
        job.warning(f"the provider cannot be queried: {result.provider_error}")
    return result.exit


def _report_silent_runs(job: Job, home: "Home", where: str) -> None:
    """Warn of runs of the W&B project `where` that have been silent for long and that no watcher here
    monitors. A failed query of W&B only causes a warning, because the sweep is valid without it.
    """
    from prime_train.watch.stale_runs import description, find_stale

    try:
        stale = find_stale(home.known_store(), home.providers_here, home.environment, where)
    except ExternalError as error:
        job.warning(f"W&B cannot be queried for silent runs of {where}: {error}")
        return
    job.output(silent=len(stale))
    for one in stale[:SILENT_SHOWN_MAX]:
        job.warning("\n".join(one_line(line) for line in description(one).splitlines()))
    if stale:
        listed = "".join(f"1. {plain(description(one))}\n" for one in stale)
        job.summary(f"### {len(stale)} of {plain(where)} fell silent, according to W&B only\n\n{listed}")


def _words(swept: "Sequence[SweptRun]", count: int, now_s: int) -> str:
    """Return Markdown on the runs that were swept: the state of this repository's runs and their events
    meanwhile. Runs of other repositories are only counted.
    """
    from prime_train.runs.headline import headline

    rows = [
        (code(one.record.run.run_id), plain(headline(one.record.run, one.record.lease, now_s)))
        for one in swept
    ]
    lines = [
        f"### Watched: {count} {'run was' if count == 1 else 'runs were'} due",
        "",
        *(table(("run", "now"), rows) if rows else []),
    ]
    for one in swept:
        happened = [plain(cut(redacted(event.text), TEXT_CHARS_MAX)) for event in one.events]
        lines += (
            ["", f"{code(one.record.run.run_id)}:", "", *(f"1. {text}" for text in happened)]
            if happened
            else []
        )
    return "\n".join(lines) + "\n"

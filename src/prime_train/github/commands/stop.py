"""`prime-train gha stop`: stop a run, or do what a comment or an event asks: stop, resume or status."""

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import ExternalError
from prime_train.exit_codes import Exit
from prime_train.github.auth import client
from prime_train.github.commands.job import Job, annotated, job_environment
from prime_train.github.events import Comment

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.github.api import GitHub
    from prime_train.github.run_command import RunCommand
    from prime_train.runs.store import RunRecord


@annotated
def stop(
    run: Annotated[
        str,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_RUN", help="Id of the run; by default the one that the event names."
        ),
    ] = "",
    now: Annotated[
        bool,
        typer.Option(
            "--now", envvar="PRIME_TRAIN_INPUT_NOW", help="Stop without waiting for a last checkpoint."
        ),
    ] = False,
    minutes: Annotated[
        float,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_MINUTES",
            min=0,
            max=300,
            help="Maximum minutes to wait while the machine starts or ends.",
        ),
    ] = 0,
) -> Exit:
    """Stop a run, or carry out the command in a comment."""
    from prime_train.github.commands.printer import printer
    from prime_train.github.commands.schedule import report_schedule
    from prime_train.github.job_home import job_home
    from prime_train.github.run_command import Ignored, follow_up, request_once, run_command
    from prime_train.github.runs import has_active

    environment = job_environment(os.environ)
    job = Job.of(environment)
    github = client(environment)(job.repository)
    wanted = run_command(job.trigger(), github, run)
    if isinstance(wanted, Ignored):
        if wanted.why:
            job.notice(wanted.why)
        if wanted.malformed is not None:
            _react(job, github, wanted.malformed, "confused")
        job.output(run="", state="", did="nothing")
        return Exit.OK
    home = job_home(environment)
    record = request_once(home, job.repository, wanted, now=now)
    if wanted.comment is not None:
        _react(job, github, wanted.comment, "+1")
    record = follow_up(home, wanted, record, partial(printer, home, job.repository), minutes=minutes)
    _answer(job, home, record, wanted)
    if has_active(home, job.repository):
        report_schedule(job, github, is_live=True, enables=True)
    return Exit.OK


def _answer(job: Job, home: "Home", record: "RunRecord", wanted: "RunCommand") -> None:
    from prime_train.github.commands.publish import show, summarize

    show(job, home, record)
    summarize(job, home, record)
    job.output(run=record.run.run_id, state=record.run.state.value, did=wanted.does)
    typer.echo(f"{record.run.run_id} is {record.run.state.value}; requested: {wanted.does}")


def _react(job: Job, github: "GitHub", comment: Comment, content: str) -> None:
    from prime_train.github.comments import react

    try:
        react(github, comment.comment_id, content)
    except ExternalError as error:
        job.warning(f"the reaction to the comment could not be added: {error}")

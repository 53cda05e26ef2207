"""`prime-train resume RUN`: resume an ended run from its newest checkpoint."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.commands.launching import (
    AllowsFolder,
    AllowsSecretFile,
    Background,
    WithoutRehearsal,
    allowed_in,
    serve_in_background,
)
from prime_train.terminal.arguments import Quiet
from prime_train.text.invocations import worded

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.runs.store import RunRecord


def resume(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    usd: Annotated[
        float | None,
        typer.Option(help="A new budget in dollars, for all attempts together.", show_default=False),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(help="A new limit of hours of training.", show_default=False)
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="A new deadline, such as 2026-12-01T18:00+01:00.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Resume with this changed config and with the current code.", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the run, if it was launched with another name than that in --config.",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            help="Resume from the checkpoint of this step, not from the newest that is trusted.",
            min=0,
            show_default=False,
        ),
    ] = None,
    allow_folder: AllowsFolder = None,
    allow_secret_file: AllowsSecretFile = None,
    without_rehearsal: WithoutRehearsal = False,
    background: Background = True,
    quiet: Quiet = False,
) -> Exit:
    """Resume an ended run.

    A run that has failed, or was stopped or cancelled, continues from its newest checkpoint: with the config
    and code that it was launched with, or with those of --config, which is rehearsed first if it starts, saves or
    reports otherwise. A checkpoint that a trainer could not
    resume from, or from after its loss was no longer finite, is not chosen again unless --step names it. If
    no control plane is running, one is started in the background, as by run.
    """
    from prime_train.app.embedded import UNSERVED
    from prime_train.app.home import Home
    from prime_train.checks.report import terminal as findings
    from prime_train.launch.launch import Unfit
    from prime_train.launch.resume import limits_of
    from prime_train.launch.resume import resume as resume_run
    from prime_train.providers.kinds import allowed_providers

    home = Home.of(os.environ)
    if name is not None and config is None:
        raise UsageError(
            "--name says under which name --config is read, and there is no --config",
            fix="give both, or neither",
        )
    try:
        record = resume_run(
            home,
            run,
            limits_of(usd=usd, hours=hours, deadline=deadline),
            config=config,
            called=name,
            step=step,
            allowed=allowed_in(allow_folder, allow_secret_file, without_rehearsal=without_rehearsal),
        )
    except Unfit as error:
        return findings.print_refusal(error.findings, {})
    except UsageError as error:
        _refuse_unwatched(home, run, error)
        raise
    if not quiet:
        _say(record, step)
    if background:
        serve_in_background(home, allowed_providers(record.run.spec.hardware), quiet=quiet)
    elif not quiet and not home.served.is_served:
        typer.echo(worded(UNSERVED))
    return Exit.OK


def _refuse_unwatched(home: "Home", name: str, error: UsageError) -> None:
    """Raise the error with another remedy if the run has not ended, and goes on as soon as a control plane
    serves the home, as after a reboot of this machine.
    """
    from prime_train.app.embedded import UNSERVED
    from prime_train.runs.lookup import find
    from prime_train.runs.run import IllegalMove

    is_illegal = isinstance(error.__cause__, IllegalMove)
    if is_illegal and not home.served.is_served and not find(home.store(), name).run.is_over:
        raise UsageError(str(error), fix=UNSERVED, code=error.code) from error


def _say(record: "RunRecord", step: int | None) -> None:
    # What an attempt has saved since is chosen only at the next launch.
    point = record.run.resume if record.run.resume_chosen else None
    chosen = step if step is not None else point.step if point is not None else None
    start = f"step {chosen}" if chosen is not None else "its newest checkpoint, if there is one"
    typer.echo(f"{record.run.run_id} is queued again and will resume from {start}")

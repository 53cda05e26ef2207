"""`prime-train resume RUN`: resume an ended run from its newest checkpoint."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.arguments import Quiet
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.budget import Limit


def resume(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    usd: Annotated[float | None, typer.Option(help="A new budget in dollars, for all attempts together.", show_default=False)] = None,
    hours: Annotated[float | None, typer.Option(help="A new limit of hours of training.", show_default=False)] = None,
    deadline: Annotated[str | None, typer.Option(help="A new deadline, such as 2026-12-01T18:00+01:00.", show_default=False)] = None,
    config: Annotated[
        Path | None, typer.Option(help="The config to go on with, changed, and the code as it is here now.", show_default=False)
    ] = None,
    quiet: Quiet = False,
) -> Exit:
    """Let an ended run go on.

    One that was stopped, failed or cancelled goes on from its newest checkpoint: with what it was launched with, or with --config.
    """
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.launching.launch import Unfit
    from prime_train.operations.resume import resume as resume_run

    home = Home.of(os.environ)
    try:
        held = resume_run(home, run, _limits(usd, hours, deadline), config=config)
    except Unfit as error:
        return _unfit(error)
    if quiet:
        return Exit.OK
    point = held.run.resume
    start = f"step {point.step}" if point is not None else "its newest checkpoint, if it has any"
    typer.echo(f"{held.run.run_id} is queued again, to go on from {start}")
    if home.serving() is None:
        typer.echo("no control plane serves it: start one (prime-train serve)")
    return Exit.OK


def _limits(usd: float | None, hours: float | None, deadline: str | None) -> "dict[Limit, float | str]":
    from prime_train.core.budget import Limit
    from prime_train.core.text.deadline import parse_deadline
    from prime_train.core.text.sizes import NUMBER_MAX

    for option, value in (("--usd", usd), ("--hours", hours)):
        if value is not None and not 0 < value <= NUMBER_MAX:
            raise UsageError(f"{option} must be more than 0, and {NUMBER_MAX} at most, not {value}")
    try:
        if deadline is not None:
            parse_deadline(deadline)
    except ValueError as error:
        raise UsageError(f"--deadline {error}") from error
    given = {Limit.USD: usd, Limit.HOURS: hours, Limit.DEADLINE: deadline}
    return {limit: value for limit, value in given.items() if value is not None}


def _unfit(error: Exception) -> Exit:
    from prime_train.cli.findings import terminal as findings
    from prime_train.operations.launching.launch import Unfit

    assert isinstance(error, Unfit)
    findings.print_findings(error.findings, {})
    findings.summary(error.findings, len({finding.file for finding in error.findings}))
    return Exit.FINDINGS

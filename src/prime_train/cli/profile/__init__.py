"""`prime-train profile RUN`: show what the time of a step is spent on, what limits the run, and what to change."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from prime_train.cli.arguments import print_json
from prime_train.cli.profile import page as prime_rl_page
from prime_train.cli.profile import steps as step_page
from prime_train.console import console
from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.operations.profile import StepProfile, StepSummary, profile_file, profile_run

STEPS_MAX = 10_000


def profile(
    run: Annotated[str | None, typer.Argument(help="The run, or the start of its id; not needed with --file.", show_default=False)] = None,
    steps: Annotated[int, typer.Option(min=5, max=STEPS_MAX, help="Number of last steps to analyze.")] = 50,
    file: Annotated[Path | None, typer.Option(help="Read this file of metrics instead of the run's own.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Show what the time of a step is spent on.

    For prime-rl, this shows how long each part of a step takes, what limits the run, how certain that is, and what to change. Exits with
    code 1 if no conclusion is possible.
    """
    if run is not None:
        found = profile_run(Home.of(os.environ), run, file, steps=steps, warn=lambda text: typer.echo(text, err=True))
    elif file is not None:
        found = profile_file(file, steps=steps)
    else:
        raise UsageError("no run was given", fix="prime-train profile RUN, or --file metrics.jsonl")
    page, record = _reported(found)
    if as_json:
        print_json(record)
    else:
        console().print(page)
    return Exit.OK if found.is_known else Exit.FINDINGS


def _reported(found: StepProfile | StepSummary) -> tuple[RenderableType, dict[str, object]]:
    """Return the text for the terminal, and the record for JSON output."""
    if isinstance(found, StepProfile):
        return prime_rl_page.page(found), prime_rl_page.record(found)
    return step_page.page(found), step_page.record(found)

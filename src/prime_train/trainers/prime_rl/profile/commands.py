"""`prime-train profile RUN|CONFIG`: show what the time of a step is spent on, what limits the run, and what
to change.
"""

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.planning.limits import PROBE_USD
from prime_train.terminal.arguments import print_json
from prime_train.trainers.prime_rl.profile import STEPS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from prime_train.app.home import Home
    from prime_train.status.profile import StepProfile, StepSummary


STEPS_MAX = 10_000
PROBED = 5
"""The steps of a probe that are analyzed."""
CONFIGS = (".yaml", ".yml")


def profile(
    run: Annotated[
        str | None,
        typer.Argument(
            help="The run, or the start of its id, or a config to probe first; not needed with --file.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=5,
            max=STEPS_MAX,
            help=f"Number of last steps to analyze, by default {STEPS}; of a config {PROBED}.",
            show_default=False,
        ),
    ] = None,
    usd: Annotated[
        float, typer.Option(help="With a config: the most dollars that its probe may cost, set-up included.")
    ] = PROBE_USD,
    file: Annotated[
        Path | None,
        typer.Option(help="Read this file of metrics instead of the run's own.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Show what the time of a step is spent on.

    For prime-rl, this shows how long each part of a step takes, what limits the run, how certain that is, and
    what to change; for other trainers, how long steps and saves take. Exits with code 1 if no conclusion is
    possible.

    A config is launched as a probe first, which ends once enough steps were made.
    """
    from prime_train.app.home import Home
    from prime_train.status.profile import profile_file, profile_run
    from prime_train.terminal.console import console

    home = Home.of(os.environ)
    if run is not None and run.endswith(CONFIGS) and file is None:
        run, done = _probed(home, Path(run), steps or PROBED, usd)
        if done is not Exit.OK:
            return done
    if run is not None:
        found = profile_run(
            home.store(),
            home.files(),
            run,
            file,
            steps=steps or STEPS,
            warn=lambda text: typer.echo(text, err=True),
        )
    elif file is not None:
        found = profile_file(file, steps=steps or STEPS)
    else:
        raise UsageError("no run was given", fix="prime-train profile RUN, or --file metrics.jsonl")
    page, record = _reported(found)
    if as_json:
        print_json(record)
    else:
        console().print(page)
    return Exit.OK if found.is_known else Exit.FINDINGS


def _probed(home: "Home", config: Path, steps: int, usd: float) -> tuple[str, Exit]:
    """Launch a probe of the config and follow it to its end; what it prints goes to standard error. Return
    the id of its run, empty if none was launched, and how that ended.
    """
    from prime_train.checks.report import terminal as findings
    from prime_train.launch.launch_config import InvalidConfig, checked, launch_checked
    from prime_train.launch.probe import ProbeLimits
    from prime_train.status.commands.follow import follow
    from prime_train.trainers.step_times import WARM_UP

    # The first steps of a launch are not representative, and are not analyzed.
    limits = ProbeLimits(steps + WARM_UP, 0.0, usd)
    with redirect_stdout(sys.stderr):
        try:
            what = checked(home, config, probe=limits)
            run_id = launch_checked(home, what).run_id
        except InvalidConfig as error:
            findings.print_findings(error.findings, error.sources)
            return "", Exit.FINDINGS
        typer.echo(
            f"{run_id} is queued: it ends once {limits.steps} steps were made, and costs ${usd:,.2f} at most"
        )
        return run_id, follow(home, run_id)


def _reported(found: "StepProfile | StepSummary") -> "tuple[RenderableType, dict[str, object]]":
    """Return the text for the terminal, and the record for JSON output."""
    from prime_train.status.profile import StepProfile
    from prime_train.trainers.prime_rl.profile import report as prime_rl_page
    from prime_train.trainers.prime_rl.profile import steps as step_page

    if isinstance(found, StepProfile):
        return prime_rl_page.page(found), prime_rl_page.record(found)
    return step_page.page(found), step_page.record(found)

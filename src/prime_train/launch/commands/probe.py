"""`prime-train probe CONFIG`: measure the time of a step and the GPU memory of a config in a short run."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.launch.commands.launching import (
    AllowsFolder,
    AllowsSecretFile,
    AsJson,
    Background,
    DryRun,
    Environment,
    Follow,
    LaunchOptions,
    Settings,
    allowed_in,
    launched,
    settings_in,
)
from prime_train.planning.limits import PROBE_SECONDS, PROBE_STEPS, PROBE_USD
from prime_train.terminal.arguments import Quiet


def probe(
    config: Annotated[Path, typer.Argument(help="The run's config, such as configs/demo.yaml.")],
    steps: Annotated[int, typer.Option(help="Steps to measure at least, after the first one.")] = PROBE_STEPS,
    seconds: Annotated[float, typer.Option(help="Seconds to measure at least.")] = PROBE_SECONDS,
    usd: Annotated[
        float, typer.Option(help="The most dollars that the probe may cost, set-up included.")
    ] = PROBE_USD,
    settings: Settings = None,
    environment: Environment = None,
    allow_folder: AllowsFolder = None,
    allow_secret_file: AllowsSecretFile = None,
    dry_run: DryRun = False,
    follow: Follow = False,
    background: Background = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> Exit:
    """Measure a config's steps and GPU memory in a short run.

    The config is launched on the cheapest machine that fits, and ended once enough steps were made, without a
    last save. From then on, cost, find, run --dry-run and pull requests use what was measured instead of
    estimates.
    """
    from prime_train.app.home import Home
    from prime_train.launch.launch_config import checked
    from prime_train.launch.probe import ProbeLimits

    home, options = Home.of(os.environ), LaunchOptions(dry_run, follow, quiet, as_json, background=background)
    allowed = allowed_in(allow_folder, allow_secret_file)
    limits, given = ProbeLimits(steps, seconds, usd), settings_in(None, settings or (), environment or ())
    return launched(
        home, lambda: checked(home, config, settings=given, probe=limits, allowed=allowed), options
    )

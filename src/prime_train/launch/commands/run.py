"""`prime-train run CONFIG`, or `prime-train run --usd 5 -- COMMAND`: launch a training run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from prime_train.environment import BUCKET
from prime_train.errors import UsageError
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
    WithoutRehearsal,
    allowed_in,
    launched,
    settings_in,
)
from prime_train.spec.choices import Spot
from prime_train.terminal.arguments import Quiet

if TYPE_CHECKING:
    from prime_train.launch.command_config import CommandConfig
    from prime_train.spec.overrides import ChosenSetting

COMMAND = "prime_train.command"
"""Key under which the words after `--` are kept in the context of the command."""


class WithCommand(TyperCommand):
    """Takes the trainer's command after `--`, with all of its own options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[COMMAND] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", "CONFIG | -- COMMAND..."]


def run(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            help="The run's config, such as configs/demo.yaml; or no config, but -- COMMAND.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the run, instead of the config's.", show_default=False)
    ] = None,
    usd: Annotated[
        float | None, typer.Option(help="Budget in dollars for all attempts together.", show_default=False)
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Rent from this provider, instead of the config's.", show_default=False
        ),
    ] = None,
    spot: Annotated[
        bool | None,
        typer.Option(
            "--spot/--on-demand", help="Rent only spot, or only on-demand machines.", show_default=False
        ),
    ] = None,
    bucket: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Bucket of this launch, instead of PRIME_TRAIN_BUCKET; its control plane uses the same.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    environment: Environment = None,
    allow_folder: AllowsFolder = None,
    allow_secret_file: AllowsSecretFile = None,
    without_rehearsal: WithoutRehearsal = False,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="RUN[@STEP]",
            help="Start from a checkpoint of another run, by default its newest; nothing is copied.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the launched config to this file.", show_default=False),
    ] = None,
    follow: Follow = False,
    background: Background = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> Exit:
    """Launch a training run.

    The config is checked as by validate, the working tree is packed into the bucket, and the run is queued
    for the control plane. If none is running, it is started in the background first, where it stays until
    prime-train down. Without a config, the command after -- is run, and the assumptions about it are printed.

    With --from the run starts from a complete checkpoint of another run, and counts steps on from there.
    """
    from prime_train.app.home import Home
    from prime_train.launch.launch_config import checked

    home = Home.of(os.environ if bucket is None else {**os.environ, BUCKET: bucket})
    options = LaunchOptions(dry_run, follow, quiet, as_json, save, background)
    given = [*settings_in(usd, settings or (), environment or ()), *_machine(provider, spot)]
    # What would be rented is shown of any script.
    allowed = allowed_in(allow_folder, allow_secret_file, without_rehearsal=without_rehearsal or dry_run)
    source = _source(config, ctx.meta.get(COMMAND), usd, name, given, quiet=quiet)
    return launched(
        home,
        lambda: checked(home, source, name=name, settings=given, start_from=start_from, allowed=allowed),
        options,
    )


def _machine(provider: str | None, spot: bool | None) -> "list[ChosenSetting]":
    """Return the values that replace the config's choice of machines."""
    from prime_train.spec.overrides import setting_of

    chosen = []
    if provider is not None:
        chosen = [
            setting_of("hardware.provider", provider, "--provider"),
            setting_of("hardware.providers", [], "--provider"),
        ]
    if spot is not None:
        chosen.append(
            setting_of(
                "hardware.spot",
                (Spot.ONLY if spot else Spot.NEVER).value,
                "--spot" if spot else "--on-demand",
            )
        )
    return chosen


def _source(
    config: Path | None,
    command: Sequence[str] | None,
    usd: float | None,
    name: str | None,
    settings: "Sequence[ChosenSetting]",
    *,
    quiet: bool,
) -> "Path | CommandConfig":
    """Return the config's file, or a config made from the command; in the latter case, print what the config
    assumes about the command.
    """
    from prime_train.launch.command_config import config_of

    if (config is None) == (command is None):
        raise UsageError(
            "give either a config or a command",
            fix="prime-train run CONFIG, or prime-train run --usd 5 -- python train.py",
        )
    if config is not None:
        return config
    if usd is None:
        raise UsageError(
            "a command without a config needs a budget (--usd)",
            fix="prime-train run --usd 5 -- python train.py",
        )

    made = config_of(command or (), usd, name=name, settings=settings)
    if quiet:
        return made
    typer.echo("assumed because there is no config:", err=True)
    for topic, text in made.assumed:
        typer.echo(f"  {topic:<12} {text}", err=True)
    return made

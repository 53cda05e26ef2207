"""`prime-train run CONFIG`, or `prime-train run --usd 5 -- COMMAND`: launch a training run."""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from prime_train.cli.arguments import Quiet, print_json
from prime_train.cli.findings import terminal as findings
from prime_train.cli.follow import follow as follow_run
from prime_train.configs.parsing.settings import Setting, read_setting, setting_of, text_setting
from prime_train.console import print_rows
from prime_train.control_plane.wiring.embedded import UNSERVED
from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.finding import Finding
from prime_train.core.registry.providers import allowed_providers
from prime_train.core.text.commands import worded
from prime_train.operations.launching import dry_run
from prime_train.operations.launching.checks import why_not_rented
from prime_train.operations.launching.command_config import CommandConfig, config_of
from prime_train.operations.launching.launch_config import Checked, InvalidConfig, checked, launch_checked, save_config
from prime_train.operations.status import status

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
        Path | None, typer.Argument(help="The run's config, such as configs/demo.yaml; or no config, but -- COMMAND.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be rented, and why.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the run, instead of the config's.", show_default=False)] = None,
    usd: Annotated[float | None, typer.Option(help="Budget in dollars for all attempts together.", show_default=False)] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set any other value of the config; may be repeated.", show_default=False),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "-e", "--env", metavar="NAME=VALUE", help="Set an environment variable of the trainer; may be repeated.", show_default=False
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="RUN[@STEP]",
            help="Start from a checkpoint of another run, by default its newest; nothing is copied.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the launched config to this file.", show_default=False)] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Follow the run until it ends; if no control plane is running, act as one.")
    ] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: the run as in status, or with --dry-run the offers.")] = False,
) -> Exit:
    """Launch a training run.

    The config is checked as by validate, the working tree is packed into the bucket, and the run is queued for the control plane. Without a
    config, the command after -- is run, and the assumptions about it are printed.

    With --from the run starts from a complete checkpoint of another run, and counts steps on from there.
    """
    home = Home.of(os.environ)
    if follow and (as_json or quiet):
        raise UsageError(
            "--follow cannot be combined with --json or --quiet", fix="leave them out, or follow the run with prime-train logs RUN -f"
        )
    given = _settings(usd, settings or (), environment or ())
    source = _source(config, ctx.meta.get(COMMAND), usd, name, given, quiet=quiet)
    try:
        what = checked(home, source, name=name, settings=given, start_from=start_from)
        with redirect_stdout(sys.stderr):
            _print(() if quiet else what.findings, what.sources)
        doubt = why_not_rented(home, what.spec)
        if doubt:
            typer.echo(f"warning: {doubt}; nothing is rented before", err=True)
        if save is not None:
            save_config(what, save)
            typer.echo("" if quiet else f"wrote {save}\n", err=True, nl=False)
        if dry_run:
            return _dry_run(home, what, as_json=as_json)
        started = launch_checked(home, what)
    except InvalidConfig as error:
        return _unfit(error.findings, error.sources)
    if as_json or quiet:
        return _print_briefly(home, started.run_id, as_json=as_json)
    typer.echo(f"{started.run_id} is queued for a machine of provider {' or '.join(allowed_providers(started.spec.hardware))}")
    if what.start is not None:
        typer.echo(f"  it starts from {what.start.text}, and counts steps on from there")
    if follow:
        return follow_run(home, started.run_id)
    if not home.is_served:
        typer.echo(worded(UNSERVED))
    else:
        typer.echo(f"  prime-train status {started.run_id} --watch")
    return Exit.OK


def _source(
    config: Path | None, command: Sequence[str] | None, usd: float | None, name: str | None, settings: Sequence[Setting], *, quiet: bool
) -> Path | CommandConfig:
    """Return the config's file, or a config made from the command; in the latter case, print what the config assumes about the command."""
    if (config is None) == (command is None):
        raise UsageError("give either a config or a command", fix="prime-train run CONFIG, or prime-train run --usd 5 -- python train.py")
    if config is not None:
        return config
    if usd is None:
        raise UsageError("a command without a config needs a budget (--usd)", fix="prime-train run --usd 5 -- python train.py")

    made = config_of(command or (), usd, name=name, settings=settings)
    if quiet:
        return made
    typer.echo("assumed because there is no config:", err=True)
    for topic, text in made.assumed:
        typer.echo(f"  {topic:<12} {text}", err=True)
    return made


def _print_briefly(home: Home, run_id: str, *, as_json: bool) -> Exit:
    if as_json:
        print_json(status(home, home.store(), run_id).row())
    else:
        typer.echo(run_id)
    return Exit.OK


def _settings(usd: float | None, given: Sequence[str], environment: Sequence[str]) -> list[Setting]:
    budget = [setting_of("budget.usd", usd, "--usd")] if usd is not None else []
    return [*budget, *(read_setting(text, "--set") for text in given), *(text_setting(*_variable(text)) for text in environment)]


def _variable(text: str) -> tuple[tuple[str, str], str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        fix = "write -e NAME=VALUE; for a secret, list only its name, under secrets: in the config or with --set secrets=[NAME]"
        raise UsageError(f"-e {name[:60]!r} has no value", fix=fix)
    return ("environment", name), value, f"-e {name[:60]}"


def _print(found: tuple[Finding, ...], sources: dict[str, str]) -> None:
    findings.print_findings(found, sources)


def _unfit(found: tuple[Finding, ...], sources: dict[str, str]) -> Exit:
    _print(found, sources)
    findings.summary(found, len({finding.file for finding in found}))
    return Exit.FINDINGS


def _dry_run(home: Home, what: Checked, *, as_json: bool) -> Exit:
    if as_json:
        print_json(dry_run.record(what, dry_run.ranking(home, what)))
        return Exit.OK
    print_rows(dry_run.rows(what, dry_run.ranking(home, what)))
    return Exit.OK

"""`prime-train run CONFIG`, or `prime-train run --usd 5 -- COMMAND`: launch a training run."""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from prime_train.cli.arguments import Quiet, print_json
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.adapters.config_yaml.settings import Setting
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.finding import Finding
    from prime_train.core.spec import RunSpec
    from prime_train.operations.launching.command_config import CommandConfig
    from prime_train.operations.launching.launch import Plan


COMMAND = "prime_train.command"
"""The words after `--`, in the context of the call."""


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
        Path | None, typer.Argument(help="The run's config, such as configs/demo.yaml; or none, and -- COMMAND.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be rented, and why.")] = False,
    name: Annotated[str | None, typer.Option(help="Another name than the config's.", show_default=False)] = None,
    usd: Annotated[float | None, typer.Option(help="The budget in dollars, for all attempts together.", show_default=False)] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other value of the config; may be repeated.", show_default=False),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("-e", "--env", metavar="NAME=VALUE", help="A variable of the trainer's; may be repeated.", show_default=False),
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the config that is launched.", show_default=False)] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Stay until the run is over; where no control plane serves, be it.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: the run as status has it, or with --dry-run the offers.")] = False,
) -> Exit:
    """Launch a training run.

    The config is checked as validate does it, the working tree packed into the bucket, and the run queued for the control plane. Without a
    config, the command after -- is run, and what is assumed about it is shown.
    """
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.launching.launch_config import InvalidConfig, checked, launch_checked, save_config

    home = Home.of(os.environ)
    if follow and (as_json or quiet):
        raise UsageError("--follow prints what happens", fix="leave out --json and --quiet, or follow it with prime-train logs RUN -f")
    given = _settings(usd, settings or (), environment or ())
    source = _source(config, ctx.meta.get(COMMAND), usd, name, given, quiet=quiet)
    try:
        what = checked(home, source, name=name, settings=given)
        with redirect_stdout(sys.stderr):
            _say(() if quiet else what.findings, what.sources)
        _say_doubts(what.spec, home)
        if save is not None:
            save_config(what, save)
            typer.echo("" if quiet else f"wrote {save}\n", err=True, nl=False)
        if dry_run:
            return _dry_run(home, what.spec, what.plan, as_json=as_json)
        started = launch_checked(home, what)
    except InvalidConfig as error:
        return _unfit(error.findings, error.sources)
    if as_json or quiet:
        return _said_shortly(home, started.run_id, as_json=as_json)
    typer.echo(f"{started.run_id} is queued, for a machine of provider {started.spec.hardware.provider}")
    if follow:
        from prime_train.cli.follow import follow as follow_run

        return follow_run(home, started.run_id)
    if home.serving() is None:
        typer.echo("no control plane serves it yet. Start one, and leave it running:\n  prime-train serve")
    else:
        typer.echo(f"  prime-train status {started.run_id} --watch")
    return Exit.OK


def _source(
    config: Path | None, command: Sequence[str] | None, usd: float | None, name: str | None, settings: "Sequence[Setting]", *, quiet: bool
) -> "Path | CommandConfig":
    """Return the config's file, or the config made of the command; print what that assumes."""
    if (config is None) == (command is None):
        raise UsageError("either a config or a command", fix="prime-train run CONFIG, or prime-train run --usd 5 -- python train.py")
    if config is not None:
        return config
    if usd is None:
        raise UsageError("a command without a config needs a budget", fix="prime-train run --usd 5 -- python train.py")
    from prime_train.operations.launching.command_config import config_of

    made = config_of(command or (), usd, name=name, settings=settings)
    if quiet:
        return made
    typer.echo("assumed, as there is no config:", err=True)
    for topic, text in made.assumed:
        typer.echo(f"  {topic:<12} {text}", err=True)
    return made


def _said_shortly(home: "Home", run_id: str, *, as_json: bool) -> Exit:
    from prime_train.operations.status import status

    if as_json:
        print_json(status(home.store(), run_id).row())
    else:
        typer.echo(run_id)
    return Exit.OK


def _settings(usd: float | None, given: Sequence[str], environment: Sequence[str]) -> "list[Setting]":
    from prime_train.adapters.config_yaml.settings import read_setting, setting_of, text_setting

    budget = [setting_of("budget.usd", usd, "--usd")] if usd is not None else []
    return [*budget, *(read_setting(text, "--set") for text in given), *(text_setting(*_variable(text)) for text in environment)]


def _variable(text: str) -> tuple[tuple[str, str], str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        fix = "write -e NAME=VALUE; of a secret, write the name alone under secrets: in the config, or --set secrets=[NAME]"
        raise UsageError(f"-e {name[:60]!r} has no value", fix=fix)
    return ("environment", name), value, f"-e {name[:60]}"


def _say(found: "tuple[Finding, ...]", sources: dict[str, str]) -> None:
    from prime_train.cli.findings import terminal as findings

    findings.print_findings(found, sources)


def _unfit(found: "tuple[Finding, ...]", sources: dict[str, str]) -> Exit:
    from prime_train.cli.findings import terminal as findings

    _say(found, sources)
    findings.summary(found, len({finding.file for finding in found}))
    return Exit.FINDINGS


def _say_doubts(spec: "RunSpec", home: "Home") -> None:
    """Print a warning if machines cannot be rented for now."""
    from prime_train.control_plane.wiring.providers import is_set_up
    from prime_train.core.registry.providers import is_rented

    provider = spec.hardware.provider
    if provider is None or not is_rented(provider):
        return
    said = home.last_serving()
    if said is None or not is_set_up(provider, home.environment):
        return
    why = home.providers(said.public_url).of(provider).unreachable()
    if why:
        typer.echo(f"warning: {why}; nothing is rented before", err=True)


def _dry_run(home: "Home", spec: "RunSpec", made: "Plan", *, as_json: bool) -> Exit:
    from prime_train.operations.launching import dry_run
    from prime_train.output import print_rows

    if as_json:
        print_json(dry_run.record(made, dry_run.ranking(home, spec)))
        return Exit.OK
    print_rows(dry_run.rows(spec, made, dry_run.ranking(home, spec)))
    return Exit.OK

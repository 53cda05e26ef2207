"""What `run` and `probe` share: values that replace a config's, what is printed of a launch, and how it is
followed.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.configs import policy_place
from prime_train.environment import BACKGROUND, PROVIDER, PUBLIC_URL
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.allowed import Allowed
from prime_train.providers.kinds import allowed_providers, credentials
from prime_train.terminal.arguments import print_json
from prime_train.text.invocations import worded

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.launch.launch_config import Checked
    from prime_train.runs.run import Run
    from prime_train.spec.overrides import ChosenSetting

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be rented, and why.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any other value of the config; may be repeated.",
        show_default=False,
    ),
]
Environment = Annotated[
    list[str] | None,
    typer.Option(
        "-e",
        "--env",
        metavar="NAME=VALUE",
        help="Set an environment variable of the trainer; may be repeated.",
        show_default=False,
    ),
]
Follow = Annotated[
    bool,
    typer.Option(
        "--follow", help="Follow the run until it ends; if no control plane is running, act as one."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON: the run as in status, or with --dry-run the offers.")
]
Background = Annotated[
    bool,
    typer.Option(
        "--background/--no-background",
        envvar=BACKGROUND,
        help="If no control plane is running, start one in the background; PRIME_TRAIN_BACKGROUND=no is the "
        "same as --no-background.",
    ),
]

AllowsFolder = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-folder",
        metavar="PATH",
        help="Folder outside of the repository that the config's code may be in; may be repeated.",
        show_default=False,
    ),
]
AllowsSecretFile = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-secret-file",
        metavar="NAME",
        help="File of the code that is uploaded although it looks like a secret; may be repeated.",
        show_default=False,
    ),
]
WithoutRehearsal = Annotated[
    bool,
    typer.Option(
        "--without-rehearsal", help="Launch a script on a rented machine that was never rehearsed by try."
    ),
]


def allowed_in(
    folders: Sequence[Path] | None, secret_files: Sequence[str] | None, *, without_rehearsal: bool = False
) -> Allowed:
    """Return what the options allow."""
    return Allowed(tuple(folders or ()), tuple(secret_files or ()), without_rehearsal)


@dataclass(frozen=True)
class LaunchOptions:
    """What is printed of a launch, and whether anything is launched. `save`: the file to write the launched
    config to; `background`: whether a control plane is started where none serves, before the launch.
    """

    dry_run: bool = False
    follow: bool = False
    quiet: bool = False
    as_json: bool = False
    save: Path | None = None
    background: bool = True

    def __post_init__(self) -> None:
        if self.follow and (self.as_json or self.quiet):
            raise UsageError(
                "--follow cannot be combined with --json or --quiet",
                fix="leave them out, or follow the run with prime-train logs RUN -f",
            )


def launched(home: "Home", check: "Callable[[], Checked]", options: LaunchOptions) -> Exit:
    """Check a config by calling `check`, launch it, and print what came of it."""
    from prime_train.checks.report import terminal as findings
    from prime_train.launch.launch_config import (
        InvalidConfig,
        launch_checked,
        refuse_missing_script,
        save_config,
    )
    from prime_train.launch.preconditions import why_not_rented

    try:
        what = check()
        with redirect_stdout(sys.stderr):
            findings.print_findings(() if options.quiet else what.findings, what.sources)
        if options.save is not None:
            save_config(what, options.save)
            typer.echo("" if options.quiet else f"wrote {options.save}\n", err=True, nl=False)
        if options.background and not options.dry_run and not options.follow:
            refuse_missing_script(what)
            serve_in_background(
                home,
                allowed_providers(what.spec.hardware),
                quiet=options.quiet,
                as_json=options.as_json,
            )
            _warn_of_other_values(home, what.spec.secrets)
        doubt = why_not_rented(home, what.spec)
        if doubt:
            typer.echo(f"warning: {doubt}; nothing is rented before", err=True)
        if options.dry_run:
            return _dry_run(home, what, as_json=options.as_json)
        return _shown(home, what, launch_checked(home, what), options)
    except InvalidConfig as error:
        return findings.print_refusal(error.findings, error.sources)


def serve_in_background(
    home: "Home", providers: Sequence[str], *, quiet: bool = False, as_json: bool = False
) -> None:
    """Start a control plane in the background if none serves the home, and say so. `providers`: those of the
    run that needs it; empty: the default ones.
    """
    from prime_train.app.background import ensure_served
    from prime_train.terminal.background import print_started

    started = ensure_served(home)
    if started is not None and not quiet:
        print_started(home, started, providers=providers, quietly=as_json)


def _warn_of_other_values(home: "Home", secrets: Iterable[str]) -> None:
    """Say so if the control plane in the background has other values of what it needs for the run than this
    terminal, because it was started before they were set.
    """
    from prime_train.app.background import differing

    names = differing(home, {*secrets, *credentials(), PROVIDER, PUBLIC_URL, policy_place.VARIABLE})
    if names:
        typer.echo(
            f"warning: the control plane in the background was started without the values that are set here "
            f"of {', '.join(names)}; to start it anew with them: prime-train down --yes, then run again or "
            "prime-train serve --background",
            err=True,
        )


def settings_in(usd: float | None, given: Sequence[str], environment: Sequence[str]) -> "list[ChosenSetting]":
    """Return the values that replace a config's: the budget, those of --set, and the variables of -e."""
    from prime_train.spec.overrides import read_setting, setting_of, text_setting

    budget = [setting_of("budget.usd", usd, "--usd")] if usd is not None else []
    return [
        *budget,
        *(read_setting(text, "--set") for text in given),
        *(text_setting(*_variable(text)) for text in environment),
    ]


def _variable(text: str) -> tuple[tuple[str, str], str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        fix = (
            "write -e NAME=VALUE; for a secret, list only its name, under secrets: in the config or with "
            "--set secrets=[NAME]"
        )
        raise UsageError(f"-e {name[:60]!r} has no value", fix=fix)
    return ("environment", name), value, f"-e {name[:60]}"


def _shown(home: "Home", what: "Checked", run: "Run", options: LaunchOptions) -> Exit:
    from prime_train.app.embedded import UNSERVED
    from prime_train.launch.dry_run import code_summary
    from prime_train.status.commands.follow import follow as follow_run
    from prime_train.status.status import run_now

    if options.as_json:
        print_json(run_now(home.store(), home.files(), run.run_id).row())
        return Exit.OK
    if options.quiet:
        typer.echo(run.run_id)
        return Exit.OK
    typer.echo(
        f"{run.run_id} is queued for a machine of provider "
        f"{' or '.join(allowed_providers(run.spec.hardware))}"
    )
    if what.plan.snapshot is not None:
        typer.echo(f"  uploaded: {code_summary(what.plan.snapshot)}")
    if what.start is not None:
        typer.echo(f"  it starts from {what.start.text}, and counts steps on from there")
    if what.probe is not None:
        typer.echo(
            f"  it ends once {what.probe.steps} steps were measured, and costs ${run.spec.budget.usd:,.2f} "
            "at most"
        )
    if options.follow:
        return follow_run(home, run.run_id)
    typer.echo(f"  prime-train status {run.run_id} --watch" if home.served.is_served else worded(UNSERVED))
    return Exit.OK


def _dry_run(home: "Home", what: "Checked", *, as_json: bool) -> Exit:
    from prime_train.launch import dry_run
    from prime_train.terminal.console import print_rows

    if as_json:
        print_json(dry_run.record(what, dry_run.ranking(home, what)))
        return Exit.OK
    print_rows(dry_run.rows(what, dry_run.ranking(home, what)))
    return Exit.OK

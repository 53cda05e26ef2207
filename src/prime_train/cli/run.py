"""`prime-train run CONFIG`: launch a training run."""

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.finding import Finding
    from prime_train.core.spec import RunSpec
    from prime_train.operations.launch import Plan


def run(
    config: Annotated[Path, typer.Argument(help="The run's config, such as configs/demo.yaml.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be rented, and why.")] = False,
    name: Annotated[str | None, typer.Option(help="Another name than the config's.", show_default=False)] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Stay until the run is over; where no control plane serves, be it.")] = False,
) -> Exit:
    """Launch a training run.

    The config is checked as validate does it, the working tree packed into the bucket, and the run queued for the control plane.
    """
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.launch_config import InvalidConfig, checked, launch_checked

    home = Home.of(os.environ)
    try:
        what = checked(home, config, name=name)
        with redirect_stdout(sys.stderr):
            _say(what.findings, what.sources)
        _say_doubts(what.spec, home)
        if dry_run:
            return _dry_run(home, what.spec, what.plan)
        started = launch_checked(home, what)
    except InvalidConfig as error:
        return _unfit(error.findings, error.sources)
    typer.echo(f"{started.run_id} is queued, for a machine of provider {started.spec.hardware.provider}")
    if follow:
        from prime_train.cli.follow import follow as follow_run

        return follow_run(home, started.run_id)
    if home.serving() is None:
        typer.echo("no control plane serves it yet. Start one, and leave it running:\n  prime-train serve")
    else:
        typer.echo(f"  prime-train status {started.run_id} --watch")
    return Exit.OK


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
    from prime_train.control_plane.wiring.providers import PRIME, has_prime

    if spec.hardware.provider != PRIME:
        return
    said = home.last_serving()
    if said is None or not has_prime(home.environment):
        return
    why = home.providers(said.public_url).unreachable()
    if why:
        typer.echo(f"warning: {why}; nothing is rented before", err=True)


def _dry_run(home: "Home", spec: "RunSpec", made: "Plan") -> Exit:
    from prime_train.operations import dry_run
    from prime_train.output import print_rows

    print_rows(dry_run.rows(spec, made, dry_run.ranking(home, spec)))
    return Exit.OK

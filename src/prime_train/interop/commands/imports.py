"""`prime-train import FILE`: make a run's config of another tool's file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.spec.finding import Severity, has_errors
from prime_train.text.invocations import worded

if TYPE_CHECKING:
    from prime_train.interop.imports.convert import Imported


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="The file, such as sky.yaml, job.yaml, .dstack.yml, train.slurm or hosted.toml.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the config to this file, instead of printing it.",
            show_default=False,
        ),
    ] = None,
    usd: Annotated[
        float | None,
        typer.Option(
            "--usd",
            help="Budget in dollars for all attempts together, which such files do not have.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="Name of the run; by default that of the file.", show_default=False)
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> Exit:
    """Make a config of another tool's task or script.

    Carries over commands, set-up, variables, GPUs, disk, price, image and code. Variables whose names look
    secret become secrets, without their values. Whatever a config does not have is listed with its line and
    the reason. Exits with code 0 only if the config can be launched, and nothing was left out that changes
    what runs, such as nodes, other accelerators, buckets, mounts or missing files. A config of Prime's hosted
    training becomes one of prime-rl, with --output also its rl.toml. Nothing is rented.
    """
    from prime_train.interop.imports.convert import checked, imported
    from prime_train.planning.new_configs.new_config import checked_usd, save_files

    made = imported(file, output, name=name, usd=checked_usd(str(usd)) if usd is not None else None)
    if output is not None:
        save_files({output: made.text, **made.files}, replace=force)
        made = checked(made)
        beside = "".join(f" and {path}" for path in made.files)
        typer.echo(f"wrote {output}{beside}, made of {file}, a file of {made.tool}")
    else:
        typer.echo(made.text, nl=False)
        for path in made.files:
            typer.echo(f"\n{path} belongs to it: add --output {made.path} to write both", err=True)
    _tell(made, file)
    return Exit.FINDINGS if has_errors(made.findings) or made.impossible else Exit.OK


def _tell(made: "Imported", file: Path) -> None:
    """Print on stderr what is left to do, so that stdout can be written to a file."""
    harmless = [one for one in made.left if one not in made.impossible]
    if harmless:
        typer.echo(f"\nnot carried over from {file}, and what runs is the same without:", err=True)
    for one in harmless:
        typer.echo(
            f"  line {one.line}: {one.what}: {one.why}" if one.what else f"  line {one.line}: {one.why}",
            err=True,
        )
    if made.missing:
        typer.echo("\nleft to write:", err=True)
    for advice in made.missing:
        typer.echo(f"  {worded(advice)}", err=True)
    errors = tuple(finding for finding in made.findings if finding.severity is Severity.ERROR)
    if made.impossible:
        typer.echo("\nit cannot run as it is:", err=True)
    for one in made.impossible:
        typer.echo(
            f"  line {one.line}: {one.what}: {one.why}" if one.what else f"  line {one.line}: {one.why}",
            err=True,
        )
    if errors:
        typer.echo("\nit cannot be launched yet:", err=True)
        for finding in errors:
            typer.echo(
                f"  {finding.line}:{finding.column}: "
                f"{finding.message}{f'; {finding.fix}' if finding.fix else ''}",
                err=True,
            )

"""`prime-train export CONFIG`: write a config as a task of SkyPilot, Kubernetes or dstack."""

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.interop.export import Format
from prime_train.launch.commands.launching import AllowsFolder, AllowsSecretFile, allowed_in
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.text.invocations import worded


def export(
    config: Annotated[
        Path, typer.Argument(help="The run's config, such as configs/demo.yaml.", show_default=False)
    ],
    kind: Annotated[
        Format, typer.Option("--format", help="The tool whose task is written.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="New folder to write; by default NAME-FORMAT.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run, instead of the config's.", show_default=False)
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Container image that the task starts from.", show_default=False)
    ] = None,
    usd_per_hour: Annotated[
        float | None,
        typer.Option(
            "--usd-per-hour",
            help="Price of a machine by which budget.usd is kept; by default hardware.usd_per_hour_max.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set any other value of the config; may be repeated.",
            show_default=False,
        ),
    ] = None,
    allow_folder: AllowsFolder = None,
    allow_secret_file: AllowsSecretFile = None,
    as_json: AsJson = False,
) -> Exit:
    """Write a config as a task of SkyPilot, Kubernetes or dstack.

    The task trains with the same commands, agent and bucket, but that tool rents the machines and replaces
    those that are lost: prime-train on the machine resumes from the newest checkpoint in the bucket. Secrets
    are named in the task and never contained in it.
    """
    from prime_train.app.home import Home
    from prime_train.checks.report import terminal as findings
    from prime_train.interop.export.export import export as export_config
    from prime_train.interop.export.export import write
    from prime_train.launch.launch_config import InvalidConfig
    from prime_train.spec.overrides import read_setting

    given = [read_setting(text, "--set") for text in settings or ()]
    allowed = allowed_in(allow_folder, allow_secret_file)
    try:
        exported = export_config(
            Home.of(os.environ),
            config,
            kind,
            name=name,
            image=image,
            usd_per_hour=usd_per_hour,
            settings=given,
            allowed=allowed,
        )
    except InvalidConfig as error:
        return findings.print_refusal(error.findings, error.sources)
    with redirect_stdout(sys.stderr):
        findings.print_findings(exported.findings, exported.sources)
    main = write(
        exported, output if output is not None else Path(f"{exported.task.rpartition('-')[0]}-{kind.value}")
    )
    written = exported.written
    notes = [*written.notes, worded(exported.price)]
    if as_json:
        names = {
            "task": exported.task,
            "format": kind.value,
            "file": str(main),
            "secrets": list(exported.secrets),
        }
        print_json({**names, "commands": list(written.apply), "notes": notes})
        return Exit.OK
    typer.echo(f"wrote {main}: task {exported.task}")
    for note in notes:
        typer.echo(f"  note: {note}")
    if exported.secrets:
        typer.echo(
            f"  secrets, taken from your environment when the task is started: {', '.join(exported.secrets)}"
        )
    typer.echo(f"to start it: cd {main.parent}")
    for command in written.apply:
        typer.echo(f"  {command}")
    return Exit.OK

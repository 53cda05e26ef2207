"""`prime-train image build CONFIG`: build a container image, or write what it is built from."""

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import AsJson, print_json

if TYPE_CHECKING:
    from prime_train.images.context import BuildContext


def build_(
    config: Annotated[
        Path, typer.Argument(help="A run's config, such as configs/demo.yaml.", show_default=False)
    ],
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the image; by default prime-train/ and the config's name.",
            show_default=False,
        ),
    ] = "",
    builder: Annotated[
        str,
        typer.Option(
            help="Program that builds: docker, podman, buildah; by default the first that works.",
            show_default=False,
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the build context with its Dockerfile to this folder, and do not build.",
            show_default=False,
        ),
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the Dockerfile, and do not build.")
    ] = False,
    as_json: AsJson = False,
) -> Exit:
    """Build a container image with the agent and a trainer's environment.

    What it contains is described by the section image of the config. The tag is the hash of all that it is
    built from, so the same config and the same requirements give the same tag. Nothing of the working tree
    gets into it but the requirements, which git must track.
    """
    from prime_train.checks.report import terminal as findings
    from prime_train.images.build import build, image_name
    from prime_train.images.context import build_context
    from prime_train.launch.launch_config import InvalidConfig

    if only_print and (output is not None or as_json or builder):
        raise UsageError("--print cannot be combined with --output, --builder or --json", fix="keep one")
    if output is not None and builder:
        raise UsageError("--output does not build, so --builder has no effect", fix="keep one")
    try:
        context = build_context(config)
    except InvalidConfig as error:
        with redirect_stdout(sys.stderr):
            return findings.print_refusal(error.findings, error.sources)
    if only_print:
        typer.echo(context.dockerfile, nl=False)
        return Exit.OK
    if output is not None:
        return _write(context, output, image_name(context, name), as_json=as_json)
    built = build(context, name=name, builder=builder)
    if as_json:
        print_json(asdict(built))
    else:
        typer.echo(f"{built.image} was built by {built.builder}")
        typer.echo("  push it to a registry; what to write as hardware.image then is in docs/image.md")
    return Exit.OK


def _write(context: "BuildContext", folder: Path, image: str, *, as_json: bool) -> Exit:
    context.write(folder)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "image": image,
                "environment": context.environment,
                "files": sorted(context.files),
            }
        )
    else:
        typer.echo(f"{folder}: {len(context.files)} files, from which {image} is built")
    return Exit.OK

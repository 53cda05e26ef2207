"""`prime-train validate PATHS...`: every mistake in the configs."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.cli.exits import Exit
from prime_train.cli.formats import Format


def validate(
    paths: Annotated[list[Path], typer.Argument(help="Configs, or folders of them, such as configs.", show_default=False)],
    form: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json: a list of findings.")] = False,
) -> Exit:
    """Check configs: all mistakes at once.

    A trainer's own config is checked with the run that names it, or by itself.
    """
    from prime_train.cli.check import check

    return check(paths, Format.JSON if as_json else form)

"""`prime-train lint PATHS...`: a fast `validate`, for every save and every commit."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.cli.findings.formats import Format
from prime_train.core.exit_codes import Exit


def lint(
    paths: Annotated[list[Path], typer.Argument(help="Configs, or folders of them, such as configs.", show_default=False)],
    form: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json: a list of findings.")] = False,
) -> Exit:
    """Check configs quickly, for hooks.

    As validate does, a line a finding, without notes and without estimates of memory.
    """
    from prime_train.cli.findings.check import check

    return check(paths, Format.JSON if as_json else form, fast=True)

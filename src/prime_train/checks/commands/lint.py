"""`prime-train lint PATHS...`: a fast `validate`, for every save and every commit."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.checks.report.formats import Format
from prime_train.exit_codes import Exit


def lint(
    paths: Annotated[
        list[Path], typer.Argument(help="Configs, or folders of them, such as configs.", show_default=False)
    ],
    form: Annotated[Format, typer.Option("--format", help="Format of the findings.")] = Format.TEXT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Same as --format json: a list of findings.")
    ] = False,
) -> Exit:
    """Check configs quickly, for hooks and editors.

    Checks as validate does, but without notes and memory estimates, and prints one line for each finding.
    """
    from prime_train.checks.report.check import check

    return check(paths, Format.JSON if as_json else form, fast=True)

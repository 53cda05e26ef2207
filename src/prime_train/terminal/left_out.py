"""Says which files of a machine or an archive were not written, because programs would run or obey them where
they lie.
"""

from collections.abc import Mapping

import typer

from prime_train.text.auto_run import summary
from prime_train.text.safe import neutralized


def warn_left_out(left: Mapping[str, str]) -> None:
    """Print one line to stderr, unless nothing was left out."""
    if left:
        typer.echo(
            f"left out: {len(left)} {'files' if len(left) > 1 else 'file'}: {neutralized(summary(left))}",
            err=True,
        )


def left_out_rows(left: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the files for JSON output."""
    return [{"path": path, "why": why} for path, why in left.items()]

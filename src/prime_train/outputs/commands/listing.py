"""`prime-train outputs RUN`: list a run's outputs, logs and metrics in the bucket."""

from typing import TYPE_CHECKING

import typer

from prime_train.checkpoints.commands.options import BucketUrl, RunId
from prime_train.outputs.commands.options import Attempt, Step, found_outputs
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.text.formatting import size, span
from prime_train.text.safe import neutralized

if TYPE_CHECKING:
    from prime_train.outputs.lookup import OutputRow


def list_(
    run: RunId, attempt: Attempt = None, step: Step = None, bucket: BucketUrl = None, as_json: AsJson = False
) -> None:
    """List the outputs.

    The newest version of each output is listed, whichever attempt uploaded it, then the logs and metrics of
    each attempt.
    """
    from prime_train.outputs.lookup import rows_of

    found = found_outputs(run, bucket)
    rows = rows_of(found, attempt=attempt, step=step)
    if as_json:
        print_json(rows)
    elif rows:
        _print(rows, found.now_s)
    else:
        typer.echo(f"{found.run_id} has no outputs in the bucket")


def _print(rows: "list[OutputRow]", now_s: int) -> None:
    from rich.text import Text

    from prime_train.terminal.columns import Column, Fitting
    from prime_train.terminal.console import console

    columns = {
        "file": (0, [neutralized(row["path"]) for row in rows]),
        "size": (1, [size(row["size_bytes"]) for row in rows]),
        "attempt": (2, [str(row["attempt"]) for row in rows]),
        "step": (3, ["" if row["step"] is None else f"{row['step']:,}" for row in rows]),
        "age": (4, [span(max(0, now_s - row["uploaded_s"])) for row in rows]),
        "versions": (5, [str(row["versions"]) for row in rows]),
        "": (6, ["" if row["kind"] == "output" else row["kind"] for row in rows]),
    }
    console().print(
        Fitting(
            [
                Column(name, tuple(map(Text, cells)), rank)
                for name, (rank, cells) in columns.items()
                if any(cells)
            ]
        )
    )

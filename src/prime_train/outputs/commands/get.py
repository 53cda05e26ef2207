"""`prime-train outputs RUN get DIR`: download outputs, logs and metrics into a folder."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl, Replace, RunId
from prime_train.outputs.commands.options import Attempt, Only, Step, found_outputs
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.terminal.left_out import left_out_rows, warn_left_out
from prime_train.text.formatting import size
from prime_train.text.safe import neutralized

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder to write into; it is created if it is missing.", show_default=False
    ),
]


def get(
    run: RunId,
    folder: Folder,
    only: Only = None,
    attempt: Attempt = None,
    step: Step = None,
    replace: Replace = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Download the outputs into a folder.

    Downloads the newest version of each output, verified, and the logs, metrics and TensorBoard event files
    of each attempt into DIR/_run/attempt-N. Where the newest version lacks rows that an earlier attempt N
    wrote, these are written beside it, such as eval.attempt-N.csv. Files that already exist with the same
    content are not downloaded again.
    """
    from prime_train.checkpoints.commands.progress_bar import bar
    from prime_train.outputs.get import get as get_into

    found = found_outputs(run, bucket)
    done = get_into(
        found, folder, patterns=only or (), attempt=attempt, step=step, replace=replace, progress=bar
    )
    written = done.files
    warn_left_out(done.left_out)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "files": [asdict(file) for file in written],
                "left_out": left_out_rows(done.left_out),
            }
        )
        return
    new = [file for file in written if file.is_new]
    typer.echo(
        f"{folder}: {len(new)} of {len(written)} files written, {size(sum(file.size_bytes for file in new))}"
    )
    for file in written:
        if file.part_of:
            lacking = f"{file.part_of} lacks rows that attempt {file.attempt} wrote: they are in {file.path}"
            typer.echo(neutralized(lacking))

"""`prime-train tensorboard RUN`: write a run's metrics as TensorBoard event files."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl
from prime_train.outputs.commands.options import Attempt, found_outputs
from prime_train.terminal.arguments import AsJson, print_json


def tensorboard(
    run: Annotated[str, typer.Argument(help="The run, or the start of its id.", show_default=False)],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write into.")] = Path(
        "tensorboard"
    ),
    attempt: Attempt = None,
    start: Annotated[bool, typer.Option("--start", help="Start TensorBoard, if it is installed.")] = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a run's metrics as TensorBoard event files.

    Writes one file for each attempt, as DIR/RUN/attempt-N, so that several runs can be compared in one
    folder, and prints the command that shows them. While the run trains, repeat the command: TensorBoard
    reads the added steps.
    """
    from prime_train.outputs.event_files import write_event_files

    written = write_event_files(found_outputs(run, bucket), folder, attempt=attempt)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "files": [asdict(file) for file in written.files],
                "command": written.command,
            }
        )
        return
    for file in written.files:
        typer.echo(f"{folder / file.path}: attempt {file.attempt}")
    if start:
        os.execv(written.program, written.words)
    typer.echo(f"show them with: {written.command}")

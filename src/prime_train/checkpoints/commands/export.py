"""`prime-train checkpoints RUN export FILE`: write a verified checkpoint into one archive."""

import json
from pathlib import Path
from typing import Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl, Replace, RunId, Step, found_run
from prime_train.terminal.arguments import AsJson
from prime_train.terminal.left_out import left_out_rows, warn_left_out
from prime_train.text.formatting import size


def export(
    run: RunId,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File to write, ending in .tar, .tar.zst or .tar.gz.", show_default=False
        ),
    ],
    step: Step = None,
    replace: Replace = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a checkpoint into an archive.

    Every byte is verified before it is written. If that fails, no file is left behind.
    """
    from prime_train.checkpoints.checkpoints_export import check_archive
    from prime_train.checkpoints.checkpoints_export import export as write_archive
    from prime_train.checkpoints.commands.progress_bar import bar
    from prime_train.checkpoints.manifest import checkpoint_title, left_out_of

    check_archive(file, replace=replace)
    manifest = write_archive(found_run(run, bucket), file, step, bar)
    bytes_, left = file.stat().st_size, left_out_of(manifest)
    warn_left_out(left)
    if as_json:
        row = {
            "file": str(file),
            "bytes": bytes_,
            "step": manifest.step,
            "attempt": manifest.attempt,
            "folder": manifest.folder,
        }
        row["left_out"] = left_out_rows(left)
        print(json.dumps(row, indent=2))
    else:
        typer.echo(
            f"{file}: {checkpoint_title(manifest.step, manifest.attempt)}, {size(manifest.size)} in "
            f"{size(bytes_)}"
        )

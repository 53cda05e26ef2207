"""`prime-train checkpoints RUN restore DIR`: restore a verified checkpoint into a folder; an older one if the
newest is damaged.
"""

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.checkpoints.commands.options import BucketUrl, Folder, Replace, RunId, Step, found_run
from prime_train.errors import UsageError
from prime_train.terminal.arguments import AsJson
from prime_train.terminal.left_out import left_out_rows, warn_left_out
from prime_train.text.formatting import size

if TYPE_CHECKING:
    from prime_train.checkpoints.restore_run import Damaged, Restored


def restore(
    run: RunId,
    folder: Folder,
    step: Step = None,
    before_step: Annotated[
        int | None,
        typer.Option(min=1, help="Use the newest complete checkpoint before this step.", show_default=False),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            metavar="ARCHIVE",
            help="Restore your own .tar, .tar.gz or .tar.zst instead, given as a path or as a URL in a "
            "bucket. RUN may then be -.",
            show_default=False,
        ),
    ] = None,
    replace: Replace = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Download a checkpoint into a folder.

    Downloads the newest complete checkpoint as DIR/NAME, where NAME is the checkpoint's own name. If it is
    damaged, the damaged files are named and the next older checkpoint is downloaded, unless --step is given.
    To continue an interrupted download, repeat the command.
    """
    from prime_train.checkpoints.checkpoints_archive import restore_archive
    from prime_train.checkpoints.commands.progress_bar import bar
    from prime_train.checkpoints.restore_run import check_target
    from prime_train.checkpoints.restore_run import restore as restore_into

    if step is not None and before_step is not None:
        raise UsageError("--step and --before-step cannot be combined", fix="keep one")
    if archive is not None and (step is not None or before_step is not None or bucket is not None):
        raise UsageError(
            "--archive cannot be combined with --step, --before-step or --bucket", fix="leave them out"
        )
    check_target(folder)
    if archive is not None:
        target = restore_archive(archive, folder, os.environ, replace=replace, progress=bar)
        warn_left_out(target.left_out)
        row = {"folder": str(target.folder), "archive": archive, "left_out": left_out_rows(target.left_out)}
        typer.echo(json.dumps(row, indent=2) if as_json else f"{target.folder}: unpacked from {archive}")
        return
    found = found_run(run, bucket)
    done = restore_into(
        found, folder, step=step, before_step=before_step, replace=replace, progress=bar, warn=_warn
    )
    warn_left_out(done.left_out)
    _print(done, as_json=as_json)


def _warn(damaged: "Damaged") -> None:
    typer.echo(f"DAMAGED: {damaged.what}", err=True)


def _print(done: "Restored", *, as_json: bool) -> None:
    from prime_train.checkpoints.manifest import checkpoint_title

    one, damaged = done.manifest, [asdict(row) for row in done.damaged]
    if damaged:
        typer.echo(
            f"step {one.step} was restored INSTEAD of step {damaged[0]['step']}, which is damaged", err=True
        )
    row = {
        "folder": str(done.folder),
        "step": one.step,
        "attempt": one.attempt,
        "size_bytes": one.size,
        "damaged": damaged,
    }
    row["left_out"] = left_out_rows(done.left_out)
    text = (
        f"{done.folder}: {checkpoint_title(one.step, one.attempt)}, {len(one.files) - len(done.left_out)} "
        f"files, {size(one.size)}, verified"
    )
    typer.echo(json.dumps(row, indent=2) if as_json else text)

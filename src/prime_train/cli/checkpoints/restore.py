"""`prime-train checkpoints RUN restore DIR`: restore a verified checkpoint into a folder; an older one if the newest is damaged."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, Folder, Replace, RunId, Step
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.manifest import Manifest
    from prime_train.operations.checkpoints import Found


def restore(
    run: RunId,
    folder: Folder,
    step: Step = None,
    before_step: Annotated[int | None, typer.Option(min=1, help="The newest complete one before this step.", show_default=False)] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            metavar="ARCHIVE",
            help="A .tar, .tar.gz or .tar.zst of yours instead: a path, or a URL in a bucket. RUN may then be -.",
            show_default=False,
        ),
    ] = None,
    replace: Replace = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Put a checkpoint into a folder.

    The newest complete one, as DIR/its-name. If it is damaged the files are named, and the next older one is taken, unless --step named
    it. What was cut off goes on where it stopped when the command is repeated.
    """
    if step is not None and before_step is not None:
        raise UsageError("--step and --before-step exclude each other", fix="keep one")
    if archive is not None and (step is not None or before_step is not None or bucket is not None):
        raise UsageError("--archive is restored as it is; --step, --before-step and --bucket do not go with it", fix="leave them out")
    _check(folder)
    if archive is not None:
        from prime_train.cli.checkpoints.archive import restore_archive

        restore_archive(archive, folder, replace=replace, as_json=as_json)
    else:
        _restore(run, bucket, folder, step=step, before_step=before_step, replace=replace, as_json=as_json)


def _restore(
    run: str, bucket: str | None, folder: Path, *, step: int | None, before_step: int | None, replace: bool, as_json: bool
) -> None:
    import json

    from prime_train.checkpoints.restore import CheckpointDamaged
    from prime_train.core.text.formatting import size
    from prime_train.operations.checkpoints import look

    found = look(run, bucket)
    damaged: list[dict[str, object]] = []
    for manifest in _candidates(found, step, before_step):
        try:
            target = _one(found, manifest, folder, replace=replace)
        except CheckpointDamaged as error:
            typer.echo(f"DAMAGED: {error}", err=True)
            damaged.append({"step": manifest.step, "attempt": manifest.attempt, "what": str(error)})
            continue
        if damaged:
            typer.echo(f"step {manifest.step} was restored INSTEAD of step {damaged[0]['step']}, which is damaged", err=True)
        row = {"folder": str(target), "step": manifest.step, "attempt": manifest.attempt, "size_bytes": manifest.size, "damaged": damaged}
        said = f"{target}: step {manifest.step} of attempt {manifest.attempt}, {len(manifest.files)} files, {size(manifest.size)}, verified"
        typer.echo(json.dumps(row, indent=2) if as_json else said)
        return
    fix = f"prime-train checkpoints {found.run_id} verify --all says which are whole"
    raise UsageError(
        "nothing was restored: " + ", ".join(f"step {row['step']}" for row in damaged) + " damaged", fix=fix, code=Exit.FINDINGS
    )


def _candidates(found: "Found", step: int | None, before_step: int | None) -> "list[Manifest]":
    """Return the checkpoint to restore, followed by the older ones to fall back on."""
    from prime_train.checkpoints.restore import OLDER_TRIED_MAX
    from prime_train.operations.checkpoints import newest, of_step

    if step is not None:
        return [of_step(found, step)]
    first = newest(found, before_step=before_step)
    complete = found.catalog.complete()
    return complete[complete.index(first) :][: OLDER_TRIED_MAX + 1]


def _one(found: "Found", manifest: "Manifest", folder: Path, *, replace: bool) -> Path:
    """Restore one checkpoint and return its folder. Raises CheckpointDamaged if an older checkpoint may work instead, and UsageError if it
    would fail too."""
    from prime_train.checkpoints.catalog import point_of
    from prime_train.checkpoints.restore import CheckpointDamaged, RestoreFailed, check_folder, differs, discard, restore
    from prime_train.cli.checkpoints.progress_bar import bar

    check_folder(manifest, found.pattern)
    target = folder / manifest.folder
    if not replace and target.exists() and differs(target, manifest):
        raise UsageError(f"{target} is there already, and is not this checkpoint", fix="restore into another folder, or --replace")
    try:
        with bar(f"step {manifest.step}", manifest.size) as progress:
            return restore(found.bucket, found.run_id, point_of(manifest), folder, pattern=found.pattern, progress=progress)
    except CheckpointDamaged:
        discard(folder, point_of(manifest))
        raise
    except RestoreFailed as error:
        raise UsageError(str(error), fix="make room, or restore into another folder", code=Exit.OUTSIDE_REFUSED) from error


def _check(folder: Path) -> None:
    """Raise UsageError if `folder` cannot be written to, before the bucket is accessed."""
    import os

    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise UsageError(f"{above} is a file", fix="name a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"{above} cannot be written to", fix="name a folder of yours", code=Exit.OUTSIDE_REFUSED)

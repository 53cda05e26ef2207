"""`prime-train checkpoints RUN export FILE`: write a verified checkpoint into one archive."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.cli.checkpoints.options import AsJson, BucketUrl, Replace, RunId, Step
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit


def export(
    run: RunId,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A name that ends in .tar, .tar.zst or .tar.gz.", show_default=False)],
    step: Step = None,
    replace: Replace = False,
    bucket: BucketUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a checkpoint into one archive.

    Each byte is verified on its way. Nothing is left behind where that fails.
    """
    import json

    from prime_train.checkpoints.export import export
    from prime_train.checkpoints.restore import CheckpointDamaged, RestoreFailed
    from prime_train.cli.checkpoints.progress_bar import bar
    from prime_train.core.text.formatting import size
    from prime_train.operations.checkpoints import look, newest, of_step

    _check(file, replace=replace)
    found = look(run, bucket)
    manifest = of_step(found, step) if step is not None else newest(found)
    try:
        with bar(f"step {manifest.step}", manifest.size) as progress:
            export(found.bucket, manifest, file, pattern=found.pattern, progress=progress)
    except CheckpointDamaged as error:
        fix = f"prime-train checkpoints {found.run_id} verify --all says which are whole; then use --step"
        raise UsageError(str(error), fix=fix, code=Exit.FINDINGS) from error
    except RestoreFailed as error:
        raise UsageError(str(error), code=Exit.OUTSIDE_REFUSED) from error
    bytes_ = file.stat().st_size
    if as_json:
        row = {"file": str(file), "bytes": bytes_, "step": manifest.step, "attempt": manifest.attempt, "folder": manifest.folder}
        print(json.dumps(row, indent=2))
    else:
        typer.echo(f"{file}: step {manifest.step} of attempt {manifest.attempt}, {size(manifest.size)} in {size(bytes_)}")


def _check(file: Path, *, replace: bool) -> None:
    from prime_train.checkpoints.export import KINDS

    if not any(file.name.endswith(ending) for ending in KINDS):
        raise UsageError(f"{file} is no name of an archive", fix=f"let it end in one of {', '.join(KINDS)}")
    if file.is_dir() or (file.exists() and not replace):
        raise UsageError(f"{file} is there already", fix="use another name" + ("" if file.is_dir() else ", or --replace"))
    if not file.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {file.absolute().parent}", fix="make it first")

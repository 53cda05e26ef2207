"""Write a verified checkpoint into one archive."""

from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.checkpoints.export import KINDS
from prime_train.checkpoints.export import export as write_archive
from prime_train.checkpoints.lookup import Found, newest, of_step, verifying
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.progress import Progress
from prime_train.checkpoints.restore import CheckpointDamaged, RestoreFailed
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit


def export(found: Found, file: Path, step: int | None, progress: Progress) -> Manifest:
    """Write the checkpoint of `step`, by default the newest complete one, into `file`, and return its
    manifest. Raises UsageError if there is none, or it is damaged; then nothing is left behind.
    """
    manifest = of_step(found, step) if step is not None else newest(found)
    try:
        with progress(f"step {manifest.step}", manifest.size) as report:
            write_archive(found.bucket, manifest, file, names=found.names, progress=report)
    except CheckpointDamaged as error:
        fix = Advice(*verifying(found).parts, "; then select one with ", Option(SettingAdvice.STEP))
        raise UsageError(str(error), fix=fix, code=Exit.FINDINGS) from error
    except RestoreFailed as error:
        raise UsageError(str(error), code=Exit.EXTERNAL_REFUSED) from error
    return manifest


def check_archive(file: Path, *, replace: bool) -> None:
    """Raise UsageError if `file` cannot be written, before the bucket is accessed. `replace`: it may
    exist.
    """
    if not any(file.name.endswith(ending) for ending in KINDS):
        raise UsageError(
            f"{file} is not the name of an archive", fix=f"use a name that ends in one of {', '.join(KINDS)}"
        )
    if file.is_dir() or (file.exists() and not replace):
        fix = (
            "use another name"
            if file.is_dir()
            else Advice("use another name, or ", Option(SettingAdvice.REPLACE))
        )
        raise UsageError(f"{file} already exists", fix=fix)
    if not file.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {file.absolute().parent}", fix="create the folder first")

"""Restore a verified checkpoint into a folder; an older one if the newest is damaged."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.checkpoints.catalog import point_of
from prime_train.checkpoints.lookup import Found, newest, of_step, verifying
from prime_train.checkpoints.manifest import Manifest, as_laid_down, left_out_of
from prime_train.checkpoints.pointers import write_pointers
from prime_train.checkpoints.progress import Progress
from prime_train.checkpoints.restore import (
    OLDER_TRIED_MAX,
    CheckpointDamaged,
    RestoreFailed,
    check_folder,
    differs,
    discard,
)
from prime_train.checkpoints.restore import restore as restore_into
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit


@dataclass(frozen=True)
class Damaged:
    """A checkpoint that was not restored. `what`: what is wrong with it."""

    step: int
    attempt: int
    what: str


@dataclass(frozen=True)
class Restored:
    """A checkpoint in its folder, and the newer ones that were damaged, in the order in which they were
    tried.
    """

    folder: Path
    manifest: Manifest
    damaged: tuple[Damaged, ...]

    @property
    def left_out(self) -> Mapping[str, str]:
        """The files of the checkpoint that were not written because programs would run them, each with the
        reason.
        """
        return left_out_of(self.manifest)


def restore(
    found: Found,
    folder: Path,
    *,
    step: int | None = None,
    before_step: int | None = None,
    replace: bool = False,
    progress: Progress,
    warn: Callable[[Damaged], object],
) -> Restored:
    """Restore the newest complete checkpoint, the newest before `before_step` or that of `step`, as a folder
    or files in `folder`, and the pointers beside it that are not there yet.

    `replace`: an existing folder of that name with other content may be deleted. `warn` is called with each
    damaged checkpoint, after which the next older one is tried, unless `step` names it. Raises UsageError if
    no checkpoint is left to try, or the folder cannot hold it.
    """
    damaged: list[Damaged] = []
    for manifest in _candidates(found, step, before_step):
        try:
            target = _restored(found, manifest, folder, replace=replace, progress=progress)
        except CheckpointDamaged as error:
            damaged.append(Damaged(manifest.step, manifest.attempt, str(error)))
            warn(damaged[-1])
            continue
        return Restored(target, manifest, tuple(damaged))
    steps = ", ".join(f"step {one.step}" for one in damaged)
    raise UsageError(f"nothing was restored: {steps} damaged", fix=verifying(found), code=Exit.FINDINGS)


def check_target(folder: Path) -> None:
    """Raise UsageError if `folder` cannot be written to, before the bucket is accessed."""
    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise UsageError(f"{above} is a file", fix="name a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(
            f"{above} cannot be written to", fix="choose a folder that you own", code=Exit.EXTERNAL_REFUSED
        )


def _candidates(found: Found, step: int | None, before_step: int | None) -> list[Manifest]:
    """Return the checkpoint to restore, followed by the older ones to fall back on."""
    if step is not None:
        return [of_step(found, step)]
    first = newest(found, before_step=before_step)
    complete = found.catalog.complete()
    return complete[complete.index(first) :][: OLDER_TRIED_MAX + 1]


def _restored(found: Found, manifest: Manifest, folder: Path, *, replace: bool, progress: Progress) -> Path:
    """Restore one checkpoint and return its folder. Raises CheckpointDamaged if an older checkpoint may work
    instead, and UsageError if an older one would fail as well, for example because the disk is full.
    """
    check_folder(manifest, found.names)
    target = folder / manifest.folder
    if not replace and target.exists() and differs(folder, as_laid_down(manifest)):
        fix = Advice("restore into another folder, or ", Option(SettingAdvice.REPLACE))
        raise UsageError(f"{target} already exists, but is not this checkpoint", fix=fix)
    try:
        with progress(f"step {manifest.step}", manifest.size) as report:
            restored = restore_into(
                found.bucket, found.run_id, point_of(manifest), folder, names=found.names, progress=report
            )
            number = found.names.number(manifest.step) if found.names is not None else manifest.step
            write_pointers(manifest, folder, number=number, tree=folder.absolute(), replace=False)
            return restored
    except CheckpointDamaged:
        discard(folder, point_of(manifest))
        raise
    except (RestoreFailed, OSError) as error:
        raise UsageError(
            str(error), fix="free some space, or restore into another folder", code=Exit.EXTERNAL_REFUSED
        ) from error

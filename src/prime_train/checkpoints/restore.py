"""Restores a checkpoint from a manifest in the bucket to a folder that the trainer can load.

No unverified byte ever appears in the trainer's folder: many chunks at once are fetched into their places in the files of a hidden folder
beside it, whose name no trainer's scan mistakes for a checkpoint, and one rename moves that folder into place. An interrupted restore
continues where it stopped: a chunk already on disk with the right hash is kept.
"""

import os
import shutil
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from prime_train.checkpoints.catalog import Catalog, point_of
from prime_train.checkpoints.chunks import ChunkPosition, Damaged, fetch, is_there, places
from prime_train.checkpoints.parallel import in_parallel
from prime_train.core.manifest import Manifest, ResumePoint, as_laid_down, left_out_of
from prime_train.core.text.auto_run import summary
from prime_train.core.text.paths import same_but_for_case
from prime_train.core.text.safe import neutralized
from prime_train.ports import Bucket

DISK_MARGIN_BYTES = 256 * 2**20
"""Bytes of the disk that a restore leaves free."""
NAMES_SHOWN_MAX = 20
"""Number of bad files that an error names."""
OLDER_TRIED_MAX = 5
"""Number of older checkpoints that are tried if one is damaged."""

Reported = Callable[[int, int], None]
"""Callback for progress: verified bytes on disk, and total bytes; called from several threads, one at a time."""


def unreported(done: int, total: int) -> None:
    """Discard progress reports."""


class RestoreFailed(Exception):
    """The checkpoint cannot be restored; the message gives the reason."""


class CheckpointDamaged(RestoreFailed):
    """The checkpoint in the bucket differs from what was saved; the message names up to twenty bad files. `digests`: the digests of the bad
    chunks."""

    def __init__(self, message: str, digests: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.digests = frozenset(digests)


def restore(
    bucket: Bucket,
    run_id: str,
    point: ResumePoint,
    into: Path,
    *,
    pattern: str | None = None,
    is_own: bool = False,
    progress: Reported = unreported,
) -> Path:
    """Restore the checkpoint `point` into the trainer's checkpoint folder `into` and return the checkpoint's own folder there.

    `pattern`: the run's `checkpoints.pattern`, as in `check_folder`; `is_own`: as in `as_laid_down`, which leaves out files that other
    programs would run. Raises RestoreFailed, and the bucket's errors; `into` then holds
    nothing new, and a retry continues where this call stopped.
    """
    manifest = read_manifest(bucket, run_id, point)
    check_folder(manifest, pattern)
    manifest = admitted(manifest, is_own=is_own)
    target = into / manifest.folder
    if target.is_dir() and not differs(target, manifest):
        return target
    try:
        into.mkdir(parents=True, exist_ok=True)
        stage = _stage(into, point)
        stage.mkdir(parents=True, exist_ok=True)
        _check_own(stage)
        _check_free_space(stage, manifest)
        _fetch_all(bucket, manifest, stage, progress)
        _tidy(stage, manifest)
        _move_in(stage, target)
    except OSError as error:
        raise RestoreFailed(f"step {point.step} cannot be written to this disk: {error}") from error
    return target


def check_folder(manifest: Manifest, pattern: str | None) -> None:
    """Raise CheckpointDamaged unless the manifest's folder has the name that the run gives to the checkpoint of that step.

    A manifest is written by a rented machine, and must not name a folder that has another purpose. `pattern` is the run's own; if it is
    None, the name must at least contain the number of the step.
    """
    expected = f"*{manifest.step}*" if pattern is None else pattern.format(step=manifest.step)
    if manifest.folder != expected and (pattern is not None or str(manifest.step) not in manifest.folder):
        raise CheckpointDamaged(f"manifest {manifest.key} has the folder {manifest.folder!r}, expected {expected!r}")


def admitted(manifest: Manifest, *, is_own: bool = False) -> Manifest:
    """Return the manifest of what is laid down, as `as_laid_down`. Raises RestoreFailed if nothing would be left of the checkpoint."""
    kept = as_laid_down(manifest, is_own=is_own)
    if manifest.files and not kept.files:
        named = neutralized(summary(left_out_of(manifest)))
        raise RestoreFailed(f"step {manifest.step} has nothing but files that programs would run by themselves: {named}")
    return kept


def discard(into: Path, point: ResumePoint) -> None:
    """Free the disk space left by a restore of `point` into `into` that was interrupted or found damage."""
    if into.is_dir() and (stage := _stage(into, point)).is_dir():
        shutil.rmtree(stage)


def older(catalog: Catalog, point: ResumePoint, *, attempt: int) -> list[ResumePoint]:
    """Return complete checkpoints of lower steps and earlier attempts for `attempt` to fall back on if `point` is damaged, newest first."""
    below = [m for m in catalog.complete() if m.step < point.step and m.attempt < attempt]
    return [point_of(manifest) for manifest in below[:OLDER_TRIED_MAX]]


def read_manifest(bucket: Bucket, run_id: str, point: ResumePoint) -> Manifest:
    """Return the manifest of `point`. Raises CheckpointDamaged unless it is there, readable and of that checkpoint."""
    content = bucket.get(point.key)
    if content is None:
        raise CheckpointDamaged(f"there is no manifest {point.key} in the bucket")
    try:
        manifest = Manifest.model_validate_json(content.data)
    except ValueError as error:
        raise CheckpointDamaged(f"manifest {point.key} cannot be read: {str(error)[:300]}") from error
    if (manifest.run, manifest.step, manifest.attempt) != (run_id, point.step, point.attempt):
        raise CheckpointDamaged(f"manifest {point.key} is of run {manifest.run}, step {manifest.step}, attempt {manifest.attempt}")
    if point.digest and manifest.digest != point.digest:
        raise CheckpointDamaged(f"manifest {point.key} was changed after it was chosen")
    return manifest


def _stage(into: Path, point: ResumePoint) -> Path:
    """Return the hidden folder of a restore: beside the checkpoint folder, or inside it if that is a separate file system (a rename cannot
    cross file systems) or its parent is not writable."""
    real = into.resolve()
    apart = real.parent.stat().st_dev != real.stat().st_dev or not os.access(real.parent, os.W_OK)
    parent_folder = real if apart else real.parent
    return parent_folder / f".prime-train-restore-{point.step}-e{point.attempt}"


def _check_own(stage: Path) -> None:
    """Raise RestoreFailed unless the hidden folder belongs to this user: others who can write beside it may have created that name."""
    found = stage.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RestoreFailed(f"{stage} is not a folder that you own; remove it, or restore into another folder")


def _check_free_space(stage: Path, manifest: Manifest) -> None:
    # Allocated blocks, not sizes: a file gets its full length before its content arrives.
    there = sum(512 * path.stat().st_blocks for file in manifest.files if (path := stage / file.path).is_file())
    wanted = manifest.size - there + DISK_MARGIN_BYTES
    free = shutil.disk_usage(stage).free
    if wanted > free:
        raise RestoreFailed(
            f"not enough disk space for step {manifest.step}: {wanted / 2**30:.2f} GiB needed, {free / 2**30:.2f} GiB free; "
            "free some space, or request a larger disk (hardware.disk_gib)"
        )


def _fetch_all(bucket: Bucket, manifest: Manifest, stage: Path, progress: Reported) -> None:
    begun = {file.path: _make_place(stage / file.path, file.size) for file in manifest.files}
    _check_apart(stage, manifest)
    lock = threading.Lock()
    done = 0

    def one(place: ChunkPosition) -> str | None:
        nonlocal done
        path = stage / place.file.path
        try:
            if not (begun[place.file.path] and is_there(path, place)):
                _write(path, place.offset, fetch(bucket, manifest.holder, place.chunk))
        except Damaged as error:
            return f"{place} {error}"
        with lock:
            done += place.chunk.size
            progress(done, manifest.size)
        return None

    wanted = list(places(manifest))
    outcomes = in_parallel(one, wanted)
    wrong = [(why, place.chunk.digest) for why, place in zip(outcomes, wanted, strict=True) if why is not None]
    if wrong:
        more = f" and {len(wrong) - NAMES_SHOWN_MAX} more" if len(wrong) > NAMES_SHOWN_MAX else ""
        reasons = "; ".join(why for why, _ in wrong[:NAMES_SHOWN_MAX])
        shared = f" (this run was started from it, and run {manifest.blobs_of} has its content)" if manifest.blobs_of else ""
        raise CheckpointDamaged(f"step {manifest.step}{shared} is damaged in the bucket: {reasons}{more}", [digest for _, digest in wrong])
    for file in manifest.files:
        os.utime(stage / file.path, (file.mtime_s, file.mtime_s))


def _check_apart(stage: Path, manifest: Manifest) -> None:
    """Raise RestoreFailed if the disk ignores case and two of the files would be one there."""
    alike = same_but_for_case(file.path for file in manifest.files)
    if alike is not None and (stage / alike[0]).samefile(stage / alike[1]):
        raise RestoreFailed(
            f"{alike[0]} and {alike[1]} of step {manifest.step} would be the same file on this disk, which ignores case; use another disk"
        )


def _make_place(path: Path, size: int) -> bool:
    """Create an empty file of the full length. Return True if the file existed already, in which case some of its chunks may be correct."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.unlink()
    begun = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if begun else "xb") as file:
        file.truncate(size)
    return begun


def _write(path: Path, offset: int, data: bytes | bytearray | memoryview) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(offset)
        left = memoryview(data)
        while left:  # a raw file may write less than it is given; each turn writes some, or raises
            left = left[file.write(left) :]


def differs(folder: Path, manifest: Manifest) -> bool:
    """Return whether the content of `folder` is anything other than exactly this checkpoint."""
    listed = {file.path: file.size for file in manifest.files}
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}
    if there.keys() != listed.keys() or any(path.is_symlink() or path.stat().st_size != listed[name] for name, path in there.items()):
        return True
    return not all(in_parallel(lambda place: is_there(folder / place.file.path, place), places(manifest)))


def _tidy(stage: Path, manifest: Manifest) -> None:
    """Remove files that an earlier try left and the manifest does not list."""
    listed = {stage / file.path for file in manifest.files}
    for path in [path for path in stage.rglob("*") if path not in listed and (path.is_symlink() or not path.is_dir())]:
        path.unlink()


def _move_in(stage: Path, target: Path) -> None:
    """Rename `stage` to `target`; an existing `target`, which differs from this checkpoint, is moved away first and then deleted."""
    old = stage.with_name(f"{stage.name}-old")
    if old.exists():
        shutil.rmtree(old)
    if target.is_symlink():
        target.unlink()
    elif target.exists():
        target.rename(old)
    stage.rename(target)
    if old.exists():
        shutil.rmtree(old)

"""Restores a checkpoint from a manifest in the bucket to a folder that the trainer can load.

No unverified byte ever appears in the trainer's folder: many chunks at once are fetched into their places in
the files of a hidden folder beside it, whose name no trainer's scan mistakes for a checkpoint, and one rename
moves that folder into place, or each file of a checkpoint that is no folder. An interrupted restore continues
where it stopped: a chunk already on disk with the right hash is kept.
"""

import os
import shutil
import stat
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Catalog
from prime_train.checkpoints.chunks import ChunkPosition, Damaged, fetch, is_there, places
from prime_train.checkpoints.manifest import Manifest, as_laid_down, left_out_of
from prime_train.checkpoints.parallel import in_parallel
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.text.auto_run import summary
from prime_train.text.paths import same_but_for_case
from prime_train.text.safe import neutralized

DISK_MARGIN_BYTES = 256 * 2**20
"""Bytes of the disk that a restore leaves free."""
NAMES_SHOWN_MAX = 20
"""Number of bad files that an error names."""
OLDER_TRIED_MAX = 5
"""Number of older checkpoints that are tried if one is damaged."""

Reported = Callable[[int, int], None]
"""Callback for progress: verified bytes on disk, and total bytes; called from several threads, one at a
time.
"""


def unreported(done: int, total: int) -> None:
    """Discard progress reports."""


class RestoreFailed(Exception):
    """The checkpoint cannot be restored; the message gives the reason."""


class CheckpointDamaged(RestoreFailed):
    """The checkpoint in the bucket differs from what was saved; the message names up to twenty bad files.
    `digests`: the digests of the bad chunks.
    """

    def __init__(self, message: str, digests: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.digests = frozenset(digests)


def restore(
    bucket: Bucket,
    run_id: str,
    point: ResumePoint,
    into: Path,
    *,
    names: CheckpointNames | None = None,
    is_own: bool = False,
    progress: Reported = unreported,
) -> Path:
    """Restore the checkpoint `point` into the trainer's checkpoint folder `into` and return the path of its
    own folder, or of its first file, there.

    `names`: how the run names checkpoints, as in `check_folder`; `is_own`: as in `as_laid_down`, which leaves
    out files that other programs would run. Raises RestoreFailed, and the bucket's errors; `into` then holds
    nothing new, and a retry continues where this call stopped.
    """
    manifest = read_manifest(bucket, run_id, point)
    check_folder(manifest, names)
    manifest = admitted(manifest, is_own=is_own)
    target = into / manifest.folder
    if not differs(into, manifest):
        return target
    try:
        into.mkdir(parents=True, exist_ok=True)
        stage = _stage(into, point)
        stage.mkdir(parents=True, exist_ok=True)
        _check_own(stage)
        _check_free_space(stage, manifest)
        _fetch_all(bucket, manifest, stage, progress)
        _tidy(stage, manifest)
        _move_in(stage, into, manifest)
    except OSError as error:
        raise RestoreFailed(f"step {point.step} cannot be written to this disk: {error}") from error
    return target


def check_folder(manifest: Manifest, names: CheckpointNames | None) -> None:
    """Raise CheckpointDamaged unless the manifest's folder, or each of its files, has a name that the run
    gives to the checkpoint of that step.

    A manifest is written by a rented machine, and must not name a folder or a file that has another purpose.
    `names` is how the run names checkpoints; if it is None, the names must at least contain the number of the
    step.
    """
    expected = f"*{manifest.step}*" if names is None else names.name(manifest.step)
    if not (
        str(manifest.step) in manifest.folder
        if names is None
        else names.names(manifest.folder, manifest.step)
    ):
        raise CheckpointDamaged(
            f"manifest {manifest.key} has the folder {manifest.folder!r}, expected {expected!r}"
        )
    if manifest.unit == "folder":
        return
    tops = {file.path.split("/")[0] for file in manifest.files}
    wrong = (
        next((top for top in sorted(tops) if str(manifest.step) not in top), None) if names is None else None
    )
    wrong = wrong or (names.wrong_part(manifest.folder, tops) if names is not None else None)
    if wrong is not None or manifest.folder not in tops:
        raise CheckpointDamaged(
            f"manifest {manifest.key} has the file {(wrong or '')!r}, which is no part of {expected!r}"
        )


def root_of(manifest: Manifest, into: Path) -> Path:
    """Return the folder that the paths of the files are relative to, once the checkpoint is restored into
    `into`.
    """
    return into if manifest.unit == "files" else into / manifest.folder


def remove(manifest: Manifest, into: Path) -> None:
    """Delete the restored checkpoint. Raises OSError."""
    for top in _tops(manifest):
        path = into / top
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _tops(manifest: Manifest) -> list[str]:
    """Return the names of the files and folders that the checkpoint consists of, in the folder of
    checkpoints.
    """
    return (
        sorted({file.path.split("/")[0] for file in manifest.files})
        if manifest.unit == "files"
        else [manifest.folder]
    )


def admitted(manifest: Manifest, *, is_own: bool = False) -> Manifest:
    """Return the manifest of what is laid down, as `as_laid_down`. Raises RestoreFailed if nothing would be
    left of the checkpoint.
    """
    kept = as_laid_down(manifest, is_own=is_own)
    if manifest.files and not kept.files:
        named = neutralized(summary(left_out_of(manifest)))
        raise RestoreFailed(
            f"step {manifest.step} has nothing but files that programs would run by themselves: {named}"
        )
    return kept


def discard(into: Path, point: ResumePoint) -> None:
    """Free the disk space left by a restore of `point` into `into` that was interrupted or found damage."""
    if into.is_dir() and (stage := _stage(into, point)).is_dir():
        shutil.rmtree(stage)


def older(catalog: Catalog, point: ResumePoint, *, attempt: int) -> list[Manifest]:
    """Return complete checkpoints of lower steps and earlier attempts for `attempt` to fall back on if
    `point` is damaged, newest first.
    """
    return [m for m in catalog.complete() if m.step < point.step and m.attempt < attempt]


def names_any(manifest: Manifest, digests: Collection[str]) -> bool:
    """Return whether the checkpoint contains a chunk with one of these digests."""
    return any(chunk.digest in digests for file in manifest.files for chunk in file.chunks)


def read_manifest(bucket: Bucket, run_id: str, point: ResumePoint) -> Manifest:
    """Return the manifest of `point`. Raises CheckpointDamaged unless it is there, readable and of that
    checkpoint.
    """
    content = bucket.get(point.key)
    if content is None:
        raise CheckpointDamaged(f"there is no manifest {point.key} in the bucket")
    try:
        manifest = Manifest.model_validate_json(content.data)
    except ValueError as error:
        raise CheckpointDamaged(f"manifest {point.key} cannot be read: {str(error)[:300]}") from error
    if (manifest.run, manifest.step, manifest.attempt) != (run_id, point.step, point.attempt):
        raise CheckpointDamaged(
            f"manifest {point.key} is of run {manifest.run}, step {manifest.step}, attempt {manifest.attempt}"
        )
    if point.digest and manifest.digest != point.digest:
        raise CheckpointDamaged(f"manifest {point.key} was changed after it was chosen")
    return manifest


def _stage(into: Path, point: ResumePoint) -> Path:
    """Return the hidden folder of a restore: beside the checkpoint folder, or inside it if that is a separate
    file system (a rename cannot cross file systems) or its parent is not writable.
    """
    real = into.resolve()
    apart = real.parent.stat().st_dev != real.stat().st_dev or not os.access(real.parent, os.W_OK)
    parent_folder = real if apart else real.parent
    return parent_folder / f".prime-train-restore-{point.step}-e{point.attempt}"


def _check_own(stage: Path) -> None:
    """Raise RestoreFailed unless the hidden folder belongs to this user: others who can write beside it may
    have created that name.
    """
    found = stage.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RestoreFailed(
            f"{stage} is not a folder that you own; remove it, or restore into another folder"
        )


def _check_free_space(stage: Path, manifest: Manifest) -> None:
    # Allocated blocks, not sizes: a file gets its full length before its content arrives.
    there = sum(
        512 * path.stat().st_blocks for file in manifest.files if (path := stage / file.path).is_file()
    )
    wanted = manifest.size - there + DISK_MARGIN_BYTES
    free = shutil.disk_usage(stage).free
    if wanted > free:
        raise RestoreFailed(
            f"not enough disk space for step {manifest.step}: {wanted / 2**30:.2f} GiB needed, "
            f"{free / 2**30:.2f} GiB free; "
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
    wrong = [
        (why, place.chunk.digest) for why, place in zip(outcomes, wanted, strict=True) if why is not None
    ]
    if wrong:
        more = f" and {len(wrong) - NAMES_SHOWN_MAX} more" if len(wrong) > NAMES_SHOWN_MAX else ""
        reasons = "; ".join(why for why, _ in wrong[:NAMES_SHOWN_MAX])
        shared = (
            f" (this run was started from it, and run {manifest.blobs_of} has its content)"
            if manifest.blobs_of
            else ""
        )
        raise CheckpointDamaged(
            f"step {manifest.step}{shared} is damaged in the bucket: {reasons}{more}",
            [digest for _, digest in wrong],
        )
    for file in manifest.files:
        os.utime(stage / file.path, (file.mtime_s, file.mtime_s))


def _check_apart(stage: Path, manifest: Manifest) -> None:
    """Raise RestoreFailed if the disk ignores case and two of the files would be one there."""
    alike = same_but_for_case(file.path for file in manifest.files)
    if alike is not None and (stage / alike[0]).samefile(stage / alike[1]):
        raise RestoreFailed(
            f"{alike[0]} and {alike[1]} of step {manifest.step} would be the same file on this disk, which "
            "ignores case; use another disk"
        )


def _make_place(path: Path, size: int) -> bool:
    """Create an empty file of the full length. Return True if the file existed already, in which case some of
    its chunks may be correct.
    """
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


def differs(into: Path, manifest: Manifest) -> bool:
    """Return whether what has the checkpoint's name in the folder `into` is missing, or anything other than
    exactly this checkpoint.
    """
    root = root_of(manifest, into)
    listed = {file.path: file.size for file in manifest.files}
    there: dict[str, Path] = {}
    for top in _tops(manifest):
        path = into / top
        if path.is_symlink() or not path.exists():
            return True
        found = (
            [path]
            if path.is_file()
            else [one for one in path.rglob("*") if not one.is_dir() or one.is_symlink()]
        )
        there |= {one.relative_to(root).as_posix(): one for one in found}
    if there.keys() != listed.keys() or any(
        path.is_symlink() or path.stat().st_size != listed[name] for name, path in there.items()
    ):
        return True
    return not all(in_parallel(lambda place: is_there(root / place.file.path, place), places(manifest)))


def _tidy(stage: Path, manifest: Manifest) -> None:
    """Remove files that an earlier try left and the manifest does not list."""
    listed = {stage / file.path for file in manifest.files}
    for path in [
        path for path in stage.rglob("*") if path not in listed and (path.is_symlink() or not path.is_dir())
    ]:
        path.unlink()


def _move_in(stage: Path, into: Path, manifest: Manifest) -> None:
    """Rename what is in `stage` to its place; what is there, which differs from this checkpoint, is moved
    away first and then deleted.
    """
    if manifest.unit == "folder":
        _move(stage, into / manifest.folder, stage.with_name(f"{stage.name}-old"))
        return
    # The first file last: without it the others are no checkpoint.
    for top in sorted(_tops(manifest), key=lambda top: top == manifest.folder):
        _move(stage / top, into / top, stage.with_name(f"{stage.name}-old"))
    shutil.rmtree(stage)


def _move(source: Path, target: Path, old: Path) -> None:
    if old.is_dir():
        shutil.rmtree(old)
    if target.is_dir() and not target.is_symlink():
        target.rename(old)
    elif source.is_dir():
        target.unlink(missing_ok=True)
    source.replace(target)
    if old.exists():
        shutil.rmtree(old)

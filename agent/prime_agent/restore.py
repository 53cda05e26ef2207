"""From a manifest in the bucket to a checkpoint the trainer can load.

The trainer's folder is never shown a byte that was not verified: files are fetched into a hidden folder beside it, whose name no trainer's
scan for checkpoints takes for one, and the whole is moved in with one rename. A restore that was cut off goes on where it stopped: what
lies there with the right hash is kept.
"""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from prime_agent.blobs import in_parallel
from prime_agent.digests import digest_of
from prime_train.core.keys import blob_key
from prime_train.core.manifest import Manifest, ManifestFile, ResumePoint
from prime_train.ports import Bucket

DISK_SPARE_BYTES = 256 * 2**20
NAMES_SHOWN_MAX = 20

Reported = Callable[[int, int], None]
"""Told the bytes that are there and verified, and the bytes wanted; from several threads, one at a time."""


class RestoreFailed(Exception):
    """The checkpoint can not be restored as it was saved; the message names every file that is wrong, twenty at most."""


def restore(bucket: Bucket, run_id: str, point: ResumePoint, into: Path, *, progress: Reported = lambda done, total: None) -> Path:
    """Puts the checkpoint `point` into the trainer's checkpoint folder `into` and returns its own folder there.

    Raises RestoreFailed, and what the bucket raises; `into` holds nothing new then, and asking again goes on where it stopped.
    """
    manifest = _manifest(bucket, run_id, point)
    target = into / manifest.folder
    if target.is_dir() and not _wrong(target, manifest):
        return target
    try:
        into.mkdir(parents=True, exist_ok=True)
        stage = _stage(into, point)
        stage.mkdir(parents=True, exist_ok=True)
        _check_room(stage, manifest)
        _fetch(bucket, manifest, stage, progress)
        _tidy(stage, manifest)
        _move_in(stage, target)
    except OSError as error:
        raise RestoreFailed(f"step {point.step} can not be written to this disk: {error}") from error
    return target


def _manifest(bucket: Bucket, run_id: str, point: ResumePoint) -> Manifest:
    content = bucket.get(point.key)
    if content is None:
        raise RestoreFailed(f"there is no manifest {point.key} in the bucket")
    try:
        manifest = Manifest.model_validate_json(content.data)
    except ValueError as error:
        raise RestoreFailed(f"manifest {point.key} can not be read: {str(error)[:300]}") from error
    if (manifest.run, manifest.step, manifest.epoch) != (run_id, point.step, point.epoch):
        raise RestoreFailed(f"manifest {point.key} is of run {manifest.run}, step {manifest.step}, epoch {manifest.epoch}")
    if "/" in manifest.folder or manifest.folder in ("", "."):
        raise RestoreFailed(f"manifest {point.key} names the folder {manifest.folder!r}, which is no plain name")
    return manifest


def _stage(into: Path, point: ResumePoint) -> Path:
    """Beside the checkpoint folder; inside it only where that is a file system of its own, for a rename can not leave one."""
    real = into.resolve()
    beside = real.parent if real.parent.stat().st_dev == real.stat().st_dev else real
    return beside / f".prime-train-restore-{point.step}-e{point.epoch}"


def _check_room(stage: Path, manifest: Manifest) -> None:
    there = sum(path.stat().st_size for file in manifest.files if (path := stage / file.path).is_file())
    wanted = manifest.size - there + DISK_SPARE_BYTES
    free = shutil.disk_usage(stage).free
    if wanted > free:
        raise RestoreFailed(
            f"no room for step {manifest.step}: {wanted / 2**30:.2f} GiB wanted, {free / 2**30:.2f} GiB free; raise hardware.disk_gib"
        )


def _fetch(bucket: Bucket, manifest: Manifest, stage: Path, progress: Reported) -> None:
    lock = threading.Lock()
    done = 0

    def one(file: ManifestFile) -> str | None:
        nonlocal done
        flaw = _fetch_one(bucket, manifest.run, file, stage / file.path)
        if flaw is None:
            with lock:
                done += file.size
                progress(done, manifest.size)
        return flaw

    flaws = [flaw for flaw in in_parallel(one, manifest.files) if flaw is not None]
    if flaws:
        more = f" and {len(flaws) - NAMES_SHOWN_MAX} more" if len(flaws) > NAMES_SHOWN_MAX else ""
        raise RestoreFailed(f"step {manifest.step} is damaged in the bucket: {'; '.join(flaws[:NAMES_SHOWN_MAX])}{more}")


def _fetch_one(bucket: Bucket, run_id: str, file: ManifestFile, path: Path) -> str | None:
    """Brings one file and verifies it; what is wrong with it, in words, if something is: then it is not left lying."""
    if _flaw(path, file) is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if not bucket.get_file(blob_key(run_id, file.digest), path):
            return f"{file.path} is missing"
        flaw = _flaw(path, file)
        if flaw is not None:
            path.unlink()
            return flaw
    os.utime(path, (file.mtime_s, file.mtime_s))
    return None


def _flaw(path: Path, file: ManifestFile) -> str | None:
    if not path.is_file() or path.is_symlink():
        return f"{file.path} is missing"
    size = path.stat().st_size
    if size != file.size:
        return f"{file.path} has {size} bytes instead of {file.size}"
    if digest_of(path) != file.digest:
        return f"{file.path} has another content than was saved"
    return None


def _wrong(folder: Path, manifest: Manifest) -> bool:
    """Whether `folder` is anything but exactly this checkpoint."""
    listed = {file.path for file in manifest.files}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}
    return there != listed or any(in_parallel(lambda file: _flaw(folder / file.path, file), manifest.files))


def _tidy(stage: Path, manifest: Manifest) -> None:
    """Removes what an earlier try may have left beside the files of the manifest."""
    listed = {stage / file.path for file in manifest.files}
    for path in [path for path in stage.rglob("*") if path not in listed and (path.is_symlink() or not path.is_dir())]:
        path.unlink()


def _move_in(stage: Path, target: Path) -> None:
    """With one rename; an older folder of that name, which was not this checkpoint, goes first."""
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

"""Compare every byte of checkpoints in the bucket with what was saved."""

from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.checkpoints.lookup import Found, newest, of_step
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.progress import Progress
from prime_train.checkpoints.verify import DamagedFile
from prime_train.checkpoints.verify import verify as damaged_files


@dataclass(frozen=True)
class VerifiedCheckpoint:
    """The result for one checkpoint. `manifest`: None if it cannot be read; then only its key is known."""

    key: str
    manifest: Manifest | None
    damaged: tuple[DamagedFile, ...] = ()

    @property
    def intact(self) -> bool:
        return self.manifest is not None and not self.damaged


def verify(found: Found, step: int | None, progress: Progress) -> Iterator[VerifiedCheckpoint]:
    """Verify the checkpoint of `step`, by default the newest complete one. Raises UsageError if there is
    none.
    """
    yield _verified(found, of_step(found, step) if step is not None else newest(found), progress)


def verify_all(found: Found, progress: Progress) -> Iterator[VerifiedCheckpoint]:
    """Verify every checkpoint in the bucket, then name those whose manifest cannot be read. Raises UsageError
    if there is no checkpoint.
    """
    wanted = found.catalog.manifests
    if not wanted and not found.catalog.unread:
        wanted = (newest(found),)
    for manifest in wanted:
        yield _verified(found, manifest, progress)
    yield from (VerifiedCheckpoint(key, None) for key in found.catalog.unread)


def _verified(found: Found, manifest: Manifest, progress: Progress) -> VerifiedCheckpoint:
    with progress(f"step {manifest.step}", manifest.size) as report:
        return VerifiedCheckpoint(
            manifest.key, manifest, tuple(damaged_files(found.bucket, manifest, progress=report))
        )

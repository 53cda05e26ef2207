"""A checkpoint as the bucket knows it: a manifest that lists every file with size and hash, written last.

A checkpoint exists when its manifest does and every blob it lists is there with its size. `latest.json` is for people; nothing here
reads it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from prime_train.core.keys import RUN_ID_PATTERN, blob_key, manifest_key

FILES_MAX = 50_000
STEP_MAX = 10**12 - 1
"""Keys hold twelve digits."""

BLOB_GRACE_S = 3600


def _safe(path: object) -> object:
    if isinstance(path, str):
        parts = PurePosixPath(path)
        plain = str(parts) == path and path != "."
        if not plain or parts.is_absolute() or ".." in parts.parts or "\0" in path or "\\" in path:
            raise ValueError(f"{path[:200]!r} is not a relative path inside the checkpoint")
    return path


class ManifestFile(BaseModel):
    """One file: `path` inside the checkpoint's folder, `size` in bytes, `digest` as `sha256-<hex>`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, BeforeValidator(_safe)]
    size: int = Field(ge=0)
    digest: str = Field(pattern=r"^[a-z0-9]{2,16}-[0-9a-f]{32,128}$")
    mtime_s: int = 0


class Manifest(BaseModel):
    """The commit record of step `step`, made by attempt `epoch`. `folder` is the checkpoint's name as the trainer wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    run: str = Field(pattern=f"^{RUN_ID_PATTERN}$")
    epoch: int = Field(ge=1)
    step: int = Field(ge=0, le=STEP_MAX)
    created_s: int = Field(ge=0)
    folder: Annotated[str, BeforeValidator(_safe)]
    files: tuple[ManifestFile, ...] = Field(max_length=FILES_MAX)

    @model_validator(mode="after")
    def _each_file_once(self) -> Self:
        paths = {file.path for file in self.files}
        if len(paths) != len(self.files):
            raise ValueError("a file is listed twice")
        folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        if paths & folders:
            raise ValueError(f"{min(paths & folders)!r} is listed as a file and as a folder")
        return self

    @property
    def key(self) -> str:
        return manifest_key(self.run, self.step, self.epoch)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class ResumePoint(BaseModel):
    """What an attempt restores: chosen once, after the fence, and saved in the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=0)
    epoch: int = Field(ge=1)
    key: str


def missing_blobs(manifest: Manifest, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Keys of the blobs that are absent or of another size; `sizes` maps the bucket's blob keys to bytes."""
    wanted = dict.fromkeys((blob_key(manifest.run, file.digest), file.size) for file in manifest.files)
    return tuple(key for key, size in wanted if sizes.get(key) != size)


def newest_complete(manifests: Iterable[Manifest], sizes: Mapping[str, int]) -> Manifest | None:
    """The one with the highest step, then epoch, whose every blob is in the bucket."""
    complete = (m for m in manifests if not missing_blobs(m, sizes))
    return max(complete, key=lambda m: (m.step, m.epoch), default=None)


def choose_resume(
    manifests: Iterable[Manifest], sizes: Mapping[str, int], *, epoch: int, previous: ResumePoint | None
) -> ResumePoint | None:
    """Where the attempt after `epoch` resumes: the newest complete manifest of that attempt, else what it had itself resumed from.

    Manifests of older attempts that appeared later (a machine that ran on after its fence) are never looked at.
    """
    newest = newest_complete((m for m in manifests if m.epoch == epoch), sizes)
    if newest is None or (previous is not None and newest.step < previous.step):
        return previous
    return ResumePoint(step=newest.step, epoch=newest.epoch, key=newest.key)


def expired(manifests: Sequence[Manifest], *, keep: int, committed_step: int, pinned: Iterable[str] = ()) -> tuple[Manifest, ...]:
    """Manifests that retention lets go, oldest first: all but the newest `keep` up to the last committed step.

    Only manifests below `committed_step` may go, so that a machine whose commit was refused never deletes; keys in `pinned` stay.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}; at least one checkpoint is always kept")
    pins = set(pinned)
    ranked = sorted((m for m in manifests if m.step <= committed_step), key=lambda m: (m.step, m.epoch), reverse=True)
    return tuple(m for m in reversed(ranked[keep:]) if m.key not in pins and m.step < committed_step)


def unreferenced(blobs: Mapping[str, int], manifests: Iterable[Manifest], *, now_s: int, grace_s: int = BLOB_GRACE_S) -> tuple[str, ...]:
    """Blob keys no manifest lists; `blobs` maps key to the second it was written. Younger than `grace_s` may be an upload under way."""
    used = {blob_key(m.run, file.digest) for m in manifests for file in m.files}
    return tuple(sorted(key for key, written_s in blobs.items() if key not in used and written_s + grace_s <= now_s))

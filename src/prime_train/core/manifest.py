"""A checkpoint as the bucket knows it: a manifest that lists every file with size and hashes, written last.

A file is cut into chunks of `CHUNK_BYTES`, and each chunk is one object, a blob, named by the hash of its content. So a chunk that is
there already need not be sent again, whichever file, step or dead upload it came from; and each can be sent, fetched, checked and
repaired alone. A checkpoint exists when its manifest does and every blob it lists is there with its size. `latest.json` is for people;
nothing here reads it.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from prime_train.core.keys import CODEC_PATTERN, DIGEST_PATTERN, IDENTITY_PATTERN, RUN_ID_PATTERN, blob_key, manifest_key
from prime_train.core.text.paths import violation_of_folder, violation_of_path

FILES_MAX = 50_000
CHUNK_BYTES = 16 * 2**20
"""Large enough that a request costs little beside it, small enough that many can be in memory at once."""

STEP_MAX = 10**12 - 1
"""Keys hold twelve digits."""

MTIME_S_MAX = 2**62
"""What an operating system takes; it makes the nearest of it that the disk can hold."""

CREATED_S_MAX = 253_402_300_799
"""The end of the year 9999."""

BLOB_GRACE_S = 3600


def chunk_sizes(size: int) -> tuple[int, ...]:
    """Sizes in bytes of the chunks of a file of `size` bytes: all whole, but for the last."""
    whole, rest = divmod(size, CHUNK_BYTES)
    return (CHUNK_BYTES,) * whole + ((rest,) if rest else ())


def _safe(path: object) -> object:
    if isinstance(path, str) and (violation := violation_of_path(path)):
        raise ValueError(f"{path[:200]!r} {violation}")
    return path


def _safe_folder(name: object) -> object:
    if isinstance(name, str) and (violation := violation_of_folder(name)):
        raise ValueError(f"the folder {name[:200]!r} {violation}")
    return name


class Chunk(BaseModel):
    """A part of a file: `digest` (`blake3-<hex>`) and `size` of its content, and the bytes its blob takes, encoded by `codec`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str = Field(pattern=f"^{DIGEST_PATTERN}$")
    size: int = Field(ge=1, le=CHUNK_BYTES)
    stored: int = Field(ge=1, le=CHUNK_BYTES)
    codec: str = Field(default="", pattern=f"^({CODEC_PATTERN})?$")


class ManifestFile(BaseModel):
    """One file: `path` inside the checkpoint's folder, `size` in bytes, and its chunks in their order; an empty file has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, BeforeValidator(_safe)]
    size: int = Field(ge=0)
    chunks: tuple[Chunk, ...] = ()
    mtime_s: int = Field(default=0, ge=-MTIME_S_MAX, le=MTIME_S_MAX)

    @model_validator(mode="after")
    def _chunks_are_the_file(self) -> Self:
        # Counted first: a size that nobody can have would ask for a list that nobody can hold.
        count = -(-self.size // CHUNK_BYTES)
        if len(self.chunks) != count or tuple(chunk.size for chunk in self.chunks) != chunk_sizes(self.size):
            raise ValueError(f"{self.path[:200]!r} has {self.size} bytes, which its {len(self.chunks)} chunks are not")
        return self


class Manifest(BaseModel):
    """The commit record of step `step`, made by attempt `attempt`. `folder` is the checkpoint's name as the trainer wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    run: str = Field(pattern=f"^{RUN_ID_PATTERN}$")
    attempt: int = Field(ge=1)
    step: int = Field(ge=0, le=STEP_MAX)
    created_s: int = Field(ge=0, le=CREATED_S_MAX)
    folder: Annotated[str, BeforeValidator(_safe_folder)]
    files: tuple[ManifestFile, ...] = Field(max_length=FILES_MAX)
    loss: float | None = None
    reward: float | None = None
    """What the trainer last said at the time of the checkpoint."""
    identity: str = Field(default="", pattern=f"^({IDENTITY_PATTERN})?$")
    """Of the attempt that made it."""

    @model_validator(mode="after")
    def _each_file_once(self) -> Self:
        paths = {file.path for file in self.files}
        if len(paths) != len(self.files):
            raise ValueError("a file is listed twice")
        folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        if paths & folders:
            raise ValueError(f"{min(paths & folders)!r} is listed as a file and as a folder")
        chunks = {(chunk.digest, chunk.codec, chunk.size, chunk.stored) for file in self.files for chunk in file.chunks}
        if len({chunk[:2] for chunk in chunks}) != len(chunks):
            raise ValueError("a content is listed with two sizes")
        return self

    @property
    def key(self) -> str:
        return manifest_key(self.run, self.step, self.attempt)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 of all that it says, as hex digits. Defaults are left out: a field that is added changes none."""
        return sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()

    @property
    def point(self) -> "ResumePoint":
        return ResumePoint(step=self.step, attempt=self.attempt, key=self.key, digest=self.digest)

    def blobs(self) -> dict[str, int]:
        """Keys of all its blobs, each once, and the bytes each takes in the bucket."""
        return {blob_key(self.run, chunk.digest, chunk.codec): chunk.stored for file in self.files for chunk in file.chunks}


class ResumePoint(BaseModel):
    """What an attempt restores: chosen once, after the fence, and saved in the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=0)
    attempt: int = Field(ge=1)
    key: str
    digest: str = ""
    """`Manifest.digest` when it was chosen: whoever was replaced may still write to the bucket. Empty: not known."""


def missing_blobs(manifest: Manifest, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Keys of the blobs that are absent or of another size; `sizes` maps the bucket's blob keys to bytes."""
    return tuple(key for key, size in manifest.blobs().items() if sizes.get(key) != size)


def newest_complete(manifests: Iterable[Manifest], sizes: Mapping[str, int]) -> Manifest | None:
    """The one with the highest step, then attempt, whose every blob is in the bucket."""
    complete = (m for m in manifests if not missing_blobs(m, sizes))
    return max(complete, key=lambda m: (m.step, m.attempt), default=None)


def choose_resume(
    manifests: Iterable[Manifest], sizes: Mapping[str, int], *, attempt: int, previous: ResumePoint | None, identity: str = ""
) -> ResumePoint | None:
    """Where the attempt after `attempt` resumes: the newest complete manifest of that attempt, else what it had itself resumed from.

    Manifests of older attempts that appeared later (a machine that ran on after its fence), and of a twin with the same number and another
    `identity`, are never looked at.
    """
    newest = newest_complete((m for m in manifests if (m.attempt, m.identity) == (attempt, identity)), sizes)
    if newest is None or (previous is not None and newest.step < previous.step):
        return previous
    return newest.point


def unreferenced(blobs: Mapping[str, int], manifests: Iterable[Manifest], *, now_s: int, grace_s: int = BLOB_GRACE_S) -> tuple[str, ...]:
    """Blob keys no manifest lists; `blobs` maps key to the second it was written. Younger than `grace_s` may be an upload under way."""
    used = {key for manifest in manifests for key in manifest.blobs()}
    return tuple(sorted(key for key, written_s in blobs.items() if key not in used and written_s + grace_s <= now_s))

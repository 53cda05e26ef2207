"""A checkpoint in the bucket: a manifest that lists every file with size and hashes, written last.

A file is cut into chunks of `CHUNK_BYTES`, and each chunk is one object, a blob, named by the hash of its
content. So an existing chunk is not sent again, whichever file, step or interrupted upload it came from; and
each can be sent, fetched, verified and repaired alone. A checkpoint exists when its manifest does and every
blob it lists is in the bucket with its size. `latest.json` is for people; no code here reads it.

A run that was started from another run's checkpoint, a descendant, has a manifest of its own for it, with
attempt 0. Its blobs remain those of the other run.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from prime_train.buckets.keys import (
    CODEC_PATTERN,
    DIGEST_PATTERN,
    IDENTITY_PATTERN,
    RUN_ID_PATTERN,
    blob_key,
    manifest_key,
    parse_descendant_key,
)
from prime_train.runs.resume_point import BLOB_GRACE_S, ResumePoint
from prime_train.spec.limits import CREATED_S_MAX, STEP_MAX
from prime_train.text.auto_run import auto_run, auto_run_files, is_git
from prime_train.text.paths import violation_of_folder, violation_of_path

FILES_MAX = 50_000
CHUNK_BYTES = 16 * 2**20
"""Bytes of a chunk: large enough that the cost of a request is small, small enough that many fit in memory at
once.
"""


MTIME_S_MAX = 2**62
"""The largest modification time that operating systems accept; they round it to what the disk can store."""


def chunk_sizes(size: int) -> tuple[int, ...]:
    """Return the sizes in bytes of the chunks of a file of `size` bytes: all are full except the last."""
    full, rest = divmod(size, CHUNK_BYTES)
    return (CHUNK_BYTES,) * full + ((rest,) if rest else ())


def _safe(path: object) -> object:
    if isinstance(path, str) and (violation := violation_of_path(path)):
        raise ValueError(f"{path[:200]!r} {violation}")
    return path


def _safe_folder(name: object) -> object:
    if isinstance(name, str) and (violation := violation_of_folder(name)):
        raise ValueError(f"the folder {name[:200]!r} {violation}")
    return name


class Chunk(BaseModel):
    """A part of a file: `digest` (`blake3-<hex>`) and `size` in bytes of its content, and `stored`, the bytes
    of its blob in `codec`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str = Field(pattern=f"^{DIGEST_PATTERN}$")
    size: int = Field(ge=1, le=CHUNK_BYTES)
    stored: int = Field(ge=1, le=CHUNK_BYTES)
    codec: str = Field(default="", pattern=f"^({CODEC_PATTERN})?$")


class ManifestFile(BaseModel):
    """A file of a checkpoint: `path` inside the checkpoint's folder, `size` in bytes, and its chunks in
    order; an empty file has none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, BeforeValidator(_safe)]
    size: int = Field(ge=0)
    chunks: tuple[Chunk, ...] = ()
    mtime_s: int = Field(default=0, ge=-MTIME_S_MAX, le=MTIME_S_MAX)

    @model_validator(mode="after")
    def _chunks_are_the_file(self) -> Self:
        # The count is checked first, because an absurd size would make `chunk_sizes` build a list that does
        # not fit in memory.
        count = -(-self.size // CHUNK_BYTES)
        if len(self.chunks) != count or tuple(chunk.size for chunk in self.chunks) != chunk_sizes(self.size):
            raise ValueError(
                f"{self.path[:200]!r} has {self.size} bytes, but the sizes of its {len(self.chunks)} chunks "
                "do not add up to that"
            )
        return self


NEWER_FIELDS = ("unit", "place", "pointers", "fresh_below", "progress_header", "changes_late", "seen_whole")
"""Fields of a manifest that older versions of prime-train do not know."""
POINTER_BYTES_MAX = 4096
PROGRESS_HEADER_CHARS_MAX = 4096
POINTER_SUFFIXES = ("", ".txt", ".json", ".yaml", ".yml")
TREE, PLACE = -1, -2
"""The parts of a pointer's text that stand for the absolute paths of the working tree, and of the folder that
the checkpoint is in.
"""


class Pointer(BaseModel):
    """A file or link beside a checkpoint by which the trainer finds it when it resumes: `name`, in the same
    folder.

    text: a small file whose content is `parts`: text, or the checkpoint's number with so many digits at
    least, or `TREE` or `PLACE`. link: a symbolic link to the checkpoint, or to its file `of`. copy: a file
    with the content of its file `of`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, BeforeValidator(_safe_folder)]
    kind: Literal["text", "link", "copy"]
    parts: tuple[
        Annotated[str, Field(max_length=POINTER_BYTES_MAX)] | Annotated[int, Field(ge=PLACE, le=12)], ...
    ] = Field(default=(), max_length=50)
    of: Annotated[str, BeforeValidator(lambda path: path and _safe(path))] = ""

    @model_validator(mode="after")
    def _is_no_program(self) -> Self:
        """A machine chooses the name, and it may be written into a folder of the operator: it must be no
        program, nor set up one.
        """
        suffix = PurePosixPath(self.name).suffix
        if auto_run(self.name) is not None or (
            suffix not in POINTER_SUFFIXES and suffix != PurePosixPath(self.of).suffix
        ):
            raise ValueError(f"{self.name[:200]!r} has not the name of a pointer")
        if (self.kind == "text") != any(isinstance(part, int) and part >= 0 for part in self.parts):
            raise ValueError(f"the pointer {self.name[:200]!r} does not name the checkpoint")
        return self

    def text(self, number: int, *, tree: str, place: str) -> str:
        """Return the content of the file for the checkpoint with this number, in the working tree `tree` and
        the folder `place`.
        """
        paths = {TREE: tree, PLACE: place}
        return "".join(
            part if isinstance(part, str) else paths.get(part) or f"{number:0{part}d}" for part in self.parts
        )


class Manifest(BaseModel):
    """The commit record of step `step`, written by attempt `attempt`, or by the launch of a descendant
    (attempt 0). `folder` is the name that the trainer gave the checkpoint.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    run: str = Field(pattern=f"^{RUN_ID_PATTERN}$")
    attempt: int = Field(ge=0)
    step: int = Field(ge=0, le=STEP_MAX)
    created_s: int = Field(ge=0, le=CREATED_S_MAX)
    folder: Annotated[str, BeforeValidator(_safe_folder)]
    files: tuple[ManifestFile, ...] = Field(max_length=FILES_MAX)
    loss: float | None = None
    reward: float | None = None
    """The last reward that the trainer had reported when the checkpoint was written; `loss` likewise."""
    finite: bool | None = None
    """Whether the last loss that the trainer had reported by then was a finite number; None: unknown."""
    not_finite_since: int | None = Field(default=None, ge=0, le=STEP_MAX)
    """The step from which on no reported loss was finite; None: the last one was, or it is unknown."""
    learning_rate: float | None = None
    """The last learning rate that the trainer had reported."""
    best_step: int | None = Field(default=None, ge=0, le=STEP_MAX)
    """The step of the best checkpoint so far by the trainer's own account in this one; None: it says nothing
    of it.
    """
    identity: str = Field(default="", pattern=f"^({IDENTITY_PATTERN})?$")
    """The identity of the attempt that wrote it."""
    blobs_of: str = Field(default="", pattern=f"^({RUN_ID_PATTERN})?$")
    """The run that holds the blobs, if it is another one. Only a launch writes this, so that no machine can
    refer to another run.
    """
    unit: Literal["folder", "files"] = "folder"
    """folder: the files are in a folder called `folder`. files: they are beside others in the folder of
    checkpoints, and `folder` is the name of the first one.
    """
    place: Annotated[str, BeforeValidator(lambda path: path and _safe(path))] = ""
    """The folder of checkpoints that it was in, relative to the working tree, where the config names it with
    wildcards.
    """
    pointers: tuple[Pointer, ...] = Field(default=(), max_length=20)
    fresh_below: int | None = Field(default=None, ge=0, le=STEP_MAX)
    """The step below which the first progress of a training lies that begins anew; None: unknown."""
    progress_header: str = Field(default="", max_length=PROGRESS_HEADER_CHARS_MAX)
    """The header of the table in which the trainer reports its progress."""
    changes_late: bool = False
    """Whether the trainer was seen to add or change files of a checkpoint after it counted as complete. Then
    the next ones count as complete only once the trainer has gone on.
    """
    seen_whole: bool = False
    """Whether the trainer had gone on, or ended in order, before the files were read; otherwise its save may
    have been cut off.
    """

    @model_validator(mode="after")
    def _blobs_are_its_own_or_those_of_an_ancestor(self) -> Self:
        if (self.attempt == 0) != bool(self.blobs_of) or self.blobs_of == self.run:
            raise ValueError("only a manifest of attempt 0 refers to another run, and each of them does")
        return self

    @model_validator(mode="after")
    def _each_file_once(self) -> Self:
        paths = {file.path for file in self.files}
        if len(paths) != len(self.files):
            raise ValueError("a file is listed twice")
        folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        if paths & folders:
            raise ValueError(f"{min(paths & folders)!r} is listed as a file and as a folder")
        chunks = {
            (chunk.digest, chunk.codec, chunk.size, chunk.stored)
            for file in self.files
            for chunk in file.chunks
        }
        if len({chunk[:2] for chunk in chunks}) != len(chunks):
            raise ValueError("a chunk digest is listed with two sizes")
        return self

    @model_validator(mode="after")
    def _pointers_are_beside_it(self) -> Self:
        names = {file.path.split("/")[0] for file in self.files} if self.unit == "files" else {self.folder}
        if len({pointer.name for pointer in self.pointers}) < len(self.pointers) or names & {
            pointer.name for pointer in self.pointers
        }:
            raise ValueError("a pointer has the name of another one, or of the checkpoint")
        paths = {file.path for file in self.files}
        lost = next(
            (one.of for one in self.pointers if (one.of or one.kind == "copy") and one.of not in paths), None
        )
        if lost is not None:
            raise ValueError(f"a pointer refers to {lost[:200]!r}, which is no file of the checkpoint")
        return self

    @property
    def key(self) -> str:
        return manifest_key(self.run, self.step, self.attempt)

    def to_json(self) -> bytes:
        """Return the manifest as it is stored. Fields that older versions of prime-train do not know are left
        out where they are unset.
        """
        newer = {
            name for name in NEWER_FIELDS if getattr(self, name) == type(self).model_fields[name].default
        }
        return self.model_dump_json(exclude_none=True, exclude=newer).encode()

    @property
    def size(self) -> int:
        """Return the bytes of all files together."""
        return sum(file.size for file in self.files)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all fields, as hex digits. Defaults are left out, so a new field does not
        change existing digests.
        """
        return sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()

    @property
    def point(self) -> "ResumePoint":
        return ResumePoint(step=self.step, attempt=self.attempt, key=self.key, digest=self.digest)

    @property
    def holder(self) -> str:
        """Return the id of the run that holds the blobs."""
        return self.blobs_of or self.run

    def for_descendant(self, run_id: str) -> "Manifest":
        """Return the manifest of this checkpoint as the start of the run `run_id`, with the same content. Its
        metrics are left out, because retention would compare them with those of another config.
        """
        own = {
            "run": run_id,
            "attempt": 0,
            "identity": "",
            "blobs_of": self.holder,
            "loss": None,
            "reward": None,
            "learning_rate": None,
            "best_step": None,
        }
        return Manifest.model_validate({**dict(self), **own})

    def blobs(self) -> dict[str, int]:
        """Return the keys of all blobs, each once, with their sizes in the bucket in bytes."""
        return {
            blob_key(self.holder, chunk.digest, chunk.codec): chunk.stored
            for file in self.files
            for chunk in file.chunks
        }


def checkpoint_title(step: int, attempt: int) -> str:
    """Return the name of a checkpoint for people."""
    return f"step {step} of attempt {attempt}" if attempt else f"step {step}, from which the run was started"


def descendant_manifest(run_id: str, key: str, data: bytes) -> Manifest | None:
    """Return the manifest in a record at `key` that a descendant was started from content of `run_id`; None
    if it cannot be read, or belongs elsewhere.
    """
    place = parse_descendant_key(run_id, key)
    try:
        manifest = Manifest.model_validate_json(data)
    except ValueError:
        return None
    return manifest if (manifest.run, manifest.step) == place and manifest.blobs_of == run_id else None


def left_out_of(manifest: Manifest) -> dict[str, str]:
    """Return the files of the checkpoint that must not be laid down where people work, each with the
    reason.
    """
    above = f"{manifest.folder}/"
    found = auto_run_files(f"{above}{file.path}" for file in manifest.files)
    return {path.removeprefix(above): why for path, why in found.items()}


def as_laid_down(manifest: Manifest, *, is_own: bool = False) -> Manifest:
    """Return the manifest without the files that are not laid down. `is_own`: for a machine of the run, where
    the trainer gets back everything that it saved but for folders named `.git`. Files in the bucket are not
    affected.
    """
    own = (
        {file.path for file in manifest.files if is_git(f"{manifest.folder}/{file.path}")} if is_own else None
    )
    left = own if own is not None else set(left_out_of(manifest))
    return (
        manifest.model_copy(update={"files": tuple(file for file in manifest.files if file.path not in left)})
        if left
        else manifest
    )


def missing_blobs(manifest: Manifest, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the keys of the manifest's blobs that are absent or have another size; `sizes` maps the bucket's
    blob keys to bytes.
    """
    return tuple(key for key, size in manifest.blobs().items() if sizes.get(key) != size)


def newest_complete(manifests: Iterable[Manifest], sizes: Mapping[str, int]) -> Manifest | None:
    """Return the manifest with the highest step, then attempt, of which every blob is in the bucket; None if
    there is none.
    """
    complete = (m for m in manifests if not missing_blobs(m, sizes))
    return max(complete, key=lambda m: (m.step, m.attempt), default=None)


def choose_resume(
    manifests: Iterable[Manifest],
    sizes: Mapping[str, int],
    *,
    attempt: int,
    previous: ResumePoint | None,
    identity: str = "",
) -> ResumePoint | None:
    """Return where the attempt after `attempt` resumes: the newest complete manifest of that attempt, else
    the point where it resumed.

    Manifests of older attempts that were written later (by a machine that ran on after its fence), and of
    another attempt with the same number but another `identity`, are ignored.
    """
    newest = newest_complete((m for m in manifests if (m.attempt, m.identity) == (attempt, identity)), sizes)
    if newest is None or (previous is not None and newest.step < previous.step):
        return previous
    return newest.point


def unreferenced(
    blobs: Mapping[str, int], manifests: Iterable[Manifest], *, now_s: int, grace_s: int = BLOB_GRACE_S
) -> tuple[str, ...]:
    """Return the blob keys that no manifest lists; `blobs` maps each key to the second of its last write.
    Blobs younger than `grace_s` are left out, because they may belong to an upload in progress.
    """
    used = {key for manifest in manifests for key in manifest.blobs()}
    return tuple(
        sorted(key for key, written_s in blobs.items() if key not in used and written_s + grace_s <= now_s)
    )

"""The outputs of one attempt: the list of its files in the bucket, rewritten whenever files have changed.

Content is cut into blobs as for checkpoints, but everything of one attempt is stored under a prefix with its
number and its identity. So what a replaced attempt uploads or deletes afterwards affects no other attempt,
and the clean-up of checkpoints never deletes outputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from prime_train.buckets.keys import IDENTITY_PATTERN, RUN_ID_PATTERN, output_blob_key, output_manifest_key
from prime_train.checkpoints.manifest import Chunk, ManifestFile
from prime_train.spec.limits import CREATED_S_MAX, STEP_MAX

OUTPUT_FILES_MAX = 10_000
"""Number of outputs that one attempt may have."""
VERSIONS_MAX = 3
"""Number of versions that are kept of each output, the newest included."""


class OutputFile(ManifestFile):
    """A version of an output file: `path` inside the working tree, `step` the newest step when it was read;
    uploaded at `uploaded_s`.
    """

    step: int = Field(ge=0, le=STEP_MAX)
    uploaded_s: int = Field(ge=0, le=CREATED_S_MAX)

    @property
    def content(self) -> tuple[str, ...]:
        """The digests of the file's chunks, which are equal for files of equal content."""
        return tuple(chunk.digest for chunk in self.chunks)


class OutputManifest(BaseModel):
    """The outputs of one attempt; of each path the newest version comes first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    run: str = Field(pattern=f"^{RUN_ID_PATTERN}$")
    attempt: int = Field(ge=1)
    identity: str = Field(pattern=f"^{IDENTITY_PATTERN}$")
    files: tuple[OutputFile, ...] = Field(default=(), max_length=OUTPUT_FILES_MAX * VERSIONS_MAX)

    @model_validator(mode="after")
    def _no_file_is_a_folder(self) -> Self:
        paths = {file.path for file in self.files}
        folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        if paths & folders:
            raise ValueError(f"{min(paths & folders)!r} is listed as a file and as a folder")
        return self

    @property
    def key(self) -> str:
        return output_manifest_key(self.run, self.attempt, self.identity)

    def newest(self, *, step: int | None = None) -> dict[str, OutputFile]:
        """Return the newest version of each file, by path; with `step`, the newest that was uploaded up to
        that step.
        """
        found: dict[str, OutputFile] = {}
        for file in self.files:
            if step is None or file.step <= step:
                found.setdefault(file.path, file)
        return found

    def blobs(self) -> dict[str, int]:
        """Return the keys of all blobs, each once, with their sizes in the bucket in bytes."""
        return {self.key_of(chunk): chunk.stored for file in self.files for chunk in file.chunks}

    def key_of(self, chunk: Chunk) -> str:
        return output_blob_key(self.run, self.attempt, self.identity, chunk.digest, chunk.codec)

    def with_versions(self, files: Iterable[OutputFile]) -> "OutputManifest":
        """Return the list with these files as the newest versions, and at most `VERSIONS_MAX` versions of
        each.
        """
        versions: dict[str, list[OutputFile]] = {}
        for file in self.files:
            versions.setdefault(file.path, []).append(file)
        for file in files:
            # What was a file may be a folder by now, and the other way round.
            for path in [
                path for path in versions if _is_within(path, file.path) or _is_within(file.path, path)
            ]:
                del versions[path]
            versions.setdefault(file.path, []).insert(0, file)
        kept = tuple(file for path in sorted(versions) for file in versions[path][:VERSIONS_MAX])
        return self.model_copy(update={"files": kept})


@dataclass(frozen=True)
class OutputVersion:
    """A version of an output file, and the manifest that lists it."""

    manifest: OutputManifest
    file: OutputFile


def newest_outputs(
    manifests: Iterable[OutputManifest], *, step: int | None = None
) -> dict[str, OutputVersion]:
    """Return the newest version of each output, by path, of a run whose attempts wrote these manifests,
    oldest attempt first; with `step`, the newest that was uploaded up to that step. If one attempt has a file
    and another a folder of the same name, the later attempt's counts.
    """
    found: dict[str, OutputVersion] = {}
    for manifest in manifests:
        newest = manifest.newest(step=step)
        folders = {str(parent) for path in newest for parent in PurePosixPath(path).parents}
        for path in [
            path
            for path in found
            if path in folders or any(str(parent) in newest for parent in PurePosixPath(path).parents)
        ]:
            del found[path]
        found |= {path: OutputVersion(manifest, file) for path, file in newest.items()}
    return dict(sorted(found.items()))


def outputs_at(
    manifests: Sequence[OutputManifest], step: int
) -> dict[str, tuple[OutputVersion, OutputVersion | None]]:
    """Return, by path, the outputs with which a training can go on from `step`; `manifests`: oldest attempt
    first.

    Of each, the newest version that was read up to that step or, if there is none, the one of the lowest
    step; and the first version of the last attempt that was read after that step, which has all rows up to
    it, and perhaps more; None: there is none.
    """
    found: dict[str, list[OutputVersion]] = {}
    for manifest in manifests:
        # Of each path the newest version comes first.
        for file in reversed(manifest.files):
            found.setdefault(file.path, []).append(OutputVersion(manifest, file))
    # leaves out what was a file in one attempt and is a folder in a later one
    newest = newest_outputs(manifests)
    return {path: _at(versions, step) for path, versions in sorted(found.items()) if path in newest}


def _at(versions: Sequence[OutputVersion], step: int) -> tuple[OutputVersion, OutputVersion | None]:
    before = [version for version in versions if version.file.step <= step]
    base = before[-1] if before else min(versions, key=lambda version: version.file.step)
    last = versions[-1].manifest.attempt
    after = [version for version in versions if version.manifest.attempt == last and version.file.step > step]
    return base, after[0] if after else None


def previous_outputs(manifest: OutputManifest) -> dict[str, OutputVersion]:
    """Return the version before the newest of each output that has one."""
    versions: dict[str, list[OutputFile]] = {}
    for file in manifest.files:
        versions.setdefault(file.path, []).append(file)
    return {
        path: OutputVersion(manifest, files[1]) for path, files in sorted(versions.items()) if len(files) > 1
    }


@dataclass(frozen=True)
class OutputChange:
    """An output that differs between two sets of versions; one of the two is None if the output was added or
    removed.
    """

    path: str
    before: OutputVersion | None
    after: OutputVersion | None

    @property
    def kind(self) -> str:
        return "added" if self.before is None else "removed" if self.after is None else "changed"


def output_changes(
    before: Mapping[str, OutputVersion], after: Mapping[str, OutputVersion]
) -> Sequence[OutputChange]:
    """Return the outputs whose content differs, by path."""
    pairs = [(path, before.get(path), after.get(path)) for path in sorted(before.keys() | after.keys())]
    return [
        OutputChange(path, old, new)
        for path, old, new in pairs
        if old is None or new is None or old.file.content != new.file.content
    ]


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")

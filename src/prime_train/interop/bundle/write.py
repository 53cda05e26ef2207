"""Write a bundle: the files in a fixed order, each hashed while it is written."""

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prime_train.app.home import Home
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.checkpoints_export import check_archive
from prime_train.checkpoints.export import COPY_BYTES, KINDS, Content, fetched
from prime_train.checkpoints.lookup import Found, newest, verifying
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.pins import pin
from prime_train.checkpoints.progress import Progress, silent
from prime_train.checkpoints.restore import CheckpointDamaged, Reported, RestoreFailed, admitted, check_folder
from prime_train.checkpoints.torch_weights import NotConvertible
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.interop.bundle.contents import BundledCheckpoint, collect
from prime_train.interop.bundle.layout import NAMESPACE, README, SIGNATURE, SUMS, WEIGHTS
from prime_train.interop.bundle.ssh_signature import SigningKey, sign
from prime_train.interop.bundle.weights import Conversion, Streamed, conversion
from prime_train.runs.lookup import find
from prime_train.runs.run import Run


@dataclass(frozen=True)
class WrittenBundle:
    """A bundle. `files`: the paths in it; `step`: the step of the checkpoint whose manifest it contains, None
    if there is none; `notes`: what could not be read, and why.
    """

    file: Path
    run: str
    size_bytes: int
    files: tuple[str, ...]
    step: int | None
    with_weights: bool
    notes: tuple[str, ...]


def write_bundle(
    home: Home,
    name: str,
    file: Path | None = None,
    *,
    with_weights: bool = False,
    weights_in_bucket: bool = False,
    sign_with: SigningKey | None = None,
    replace: bool = False,
    progress: Progress = silent,
) -> WrittenBundle:
    """Write the bundle of the run that `name` stands for to `file`, by default RUN.tar.gz in the current
    folder.

    `with_weights`: with the files of the newest complete checkpoint, each verified, and its model as
    safetensors where that is possible. `weights_in_bucket`: with a reference to these files in the bucket
    instead; the checkpoint is pinned. `sign_with`: the key by which the hashes are signed. `replace`: `file`
    may exist. Raises UsageError if there is no such run, the file cannot be written, or a file of the
    checkpoint is damaged, and ExternalError if the store or the bucket fails; then no new file is left.
    """
    if with_weights and weights_in_bucket:
        raise UsageError(
            "the files of the checkpoint can be in the bundle or in the bucket, not both", fix="choose one"
        )
    record = find(home.store(), name)
    run = record.run
    file = file if file is not None else Path(f"{run.run_id}.tar.gz")
    check_archive(file, replace=replace)
    found = Found(run.run_id, home.bucket_url, home.bucket(), record, home.store().now_s())
    complete = found.catalog.complete()
    manifest = newest(found) if with_weights or weights_in_bucket else complete[0] if complete else None
    draft = file.with_name(f".{file.name}.part")
    try:
        with tempfile.TemporaryDirectory(prefix="prime-train-") as folder:
            weights = admitted(manifest) if manifest is not None and with_weights else None
            converted = conversion(found.bucket, weights) if weights is not None else Conversion()
            url = home.bucket_url if weights_in_bucket else ""
            if manifest is not None and weights_in_bucket:
                pin(found, manifest.step)
            collected = collect(
                home, record, BundledCheckpoint(manifest, with_weights, url, converted), Path(folder)
            )
            with progress(run.run_id, weights.size if weights is not None else 0) as report:
                paths = _write(
                    draft,
                    file.name,
                    _members(Path(folder), found, weights, converted, report),
                    run,
                    sign_with,
                )
        draft.replace(file)
    except CheckpointDamaged as error:
        raise UsageError(str(error), fix=verifying(found), code=Exit.FINDINGS) from error
    except NotConvertible as error:
        raise UsageError(
            f"a file of the checkpoint cannot be converted: it {error}", code=Exit.EXTERNAL_REFUSED
        ) from error
    except RestoreFailed as error:
        raise UsageError(str(error), code=Exit.EXTERNAL_REFUSED) from error
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror or error}", code=Exit.EXTERNAL_REFUSED
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    step = manifest.step if manifest is not None else None
    return WrittenBundle(file, run.run_id, file.stat().st_size, paths, step, with_weights, collected.notes)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class _Member:
    path: str
    size: int
    content: _Readable


class _Hashed:
    """The file object that tarfile reads: passes on the content and hashes it."""

    def __init__(self, content: _Readable) -> None:
        self._content = content
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        data = self._content.read(size)
        self.sha256.update(data)
        return data


def _members(
    folder: Path, found: Found, weights: Manifest | None, converted: Conversion, report: Reported
) -> Iterator[_Member]:
    """Yield the README first, the other files by name, then those of the checkpoint, and the weights from
    them.
    """
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for path in sorted(paths, key=lambda path: (path != README, path)):
        with (folder / path).open("rb") as file:
            yield _Member(path, os.fstat(file.fileno()).st_size, file)
    if weights is not None:
        check_folder(weights, found.names)
        yield from _weights(found.bucket, weights, report)
        yield from (
            _Member(one.path, one.weights.size, Streamed(one.weights.content())) for one in converted.files
        )


def _weights(bucket: Bucket, manifest: Manifest, report: Reported) -> Iterator[_Member]:
    chunks = fetched(bucket, manifest, report)
    try:
        content = Content(chunks)
        for file in manifest.files:
            yield _Member(f"{WEIGHTS}/{manifest.folder}/{file.path}", file.size, content)
    finally:
        chunks.close()


def _write(
    draft: Path, name: str, members: Iterator[_Member], run: Run, key: SigningKey | None
) -> tuple[str, ...]:
    """Write the archive and return the paths in it. The list of hashes comes last, with its signature,
    because only then are all of them known.
    """
    kind = KINDS[next(ending for ending in KINDS if name.endswith(ending))]
    sums: dict[str, str] = {}
    at_s = run.ended_s if run.ended_s is not None else run.created_s
    with draft.open("wb") as file:
        with kind(file) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
            tar.copybufsize = COPY_BYTES  # type: ignore[attr-defined] # its stubs do not know it
            for member in members:
                hashed = _Hashed(member.content)
                _add(tar, f"{run.run_id}/{member.path}", member.size, hashed, at_s)
                sums[member.path] = hashed.sha256.hexdigest()
            text = "".join(_line(path, digest) for path, digest in sums.items()).encode(
                errors="surrogateescape"
            )
            _add(tar, f"{run.run_id}/{SUMS}", len(text), io.BytesIO(text), at_s)
            if key is not None:
                signature = sign(text, key, NAMESPACE)
                _add(tar, f"{run.run_id}/{SIGNATURE}", len(signature), io.BytesIO(signature), at_s)
        file.flush()
        os.fsync(file.fileno())
    return (*sums, SUMS, SIGNATURE) if key is not None else (*sums, SUMS)


def _line(path: str, digest: str) -> str:
    """Return the line of SHA256SUMS; sha256sum marks a path with an escaped line break by a backslash."""
    return f"\\{digest}  {path.replace(chr(10), chr(92) + 'n')}\n" if "\n" in path else f"{digest}  {path}\n"


def _add(tar: tarfile.TarFile, path: str, size: int, content: _Readable, at_s: int) -> None:
    """Add one file without an owner. Its time is the end of the run, so that the same content gives the same
    archive.
    """
    info = tarfile.TarInfo(path)
    info.size, info.mtime = size, at_s
    tar.addfile(info, content)

"""Export of a checkpoint as one archive for other tools. Each chunk is verified; the archive gets its name
only when it is complete.
"""

import gzip
import os
import shutil
import tarfile
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, cast

import zstandard

from prime_train.buckets.port import Bucket, Data
from prime_train.checkpoints.chunks import ChunkPosition, Damaged, fetch, places
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.restore import (
    DISK_MARGIN_BYTES,
    CheckpointDamaged,
    Reported,
    RestoreFailed,
    admitted,
    check_folder,
    unreported,
)
from prime_train.spec.checkpoint_names import CheckpointNames

AHEAD_MAX = 8
"""Number of chunks fetched ahead of writing, each of at most 16 MiB."""
COPY_BYTES = 2**20
"""Bytes of one read; divides the chunk size."""
GZIP_LEVEL = 1
"""Compression level of gzip. Higher levels hardly shrink tensors further, and gzip is slow even at this
one.
"""
ZSTD_LEVEL = 3


def _zstd(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=-1).stream_writer(file, closefd=False)


def _gzip(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    return closing(cast("IO[bytes]", gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0)))


KINDS: dict[str, Callable[[IO[bytes]], AbstractContextManager[IO[bytes]]]] = {
    ".tar": nullcontext,
    ".tar.zst": _zstd,
    ".tar.gz": _gzip,
    ".tgz": _gzip,
}
"""The compression of an archive, by the ending of its name."""


def export(
    bucket: Bucket,
    manifest: Manifest,
    into: Path,
    *,
    names: CheckpointNames | None = None,
    progress: Reported = unreported,
) -> None:
    """Write the archive to `into`, whose name ends with a key of KINDS, replacing an existing file.

    `names`: as in `check_folder`. Files that other programs would run are left out, as `left_out_of` lists
    them. Raises RestoreFailed (CheckpointDamaged names the first bad file) and the bucket's errors; in these
    cases no new file is left.
    """
    check_folder(manifest, names)
    manifest = admitted(manifest)
    kind = KINDS[next(ending for ending in KINDS if into.name.endswith(ending))]
    draft = into.with_name(f".{into.name}.part")
    try:
        _check_free_space(into, manifest)
        with draft.open("wb") as file:
            with kind(file) as packed:
                _write(packed, bucket, manifest, progress)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(into)
    except OSError as error:
        raise RestoreFailed(f"{into} cannot be written: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _check_free_space(into: Path, manifest: Manifest) -> None:
    """Raise RestoreFailed if the disk lacks space. Only for uncompressed archives: the size of a compressed
    one is not known in advance.
    """
    free = shutil.disk_usage(into.parent).free
    if into.suffix == ".tar" and manifest.size + DISK_MARGIN_BYTES > free:
        raise RestoreFailed(
            f"not enough disk space for {into}: {manifest.size / 2**30:.2f} GiB needed, {free / 2**30:.2f} "
            "GiB free"
        )


def _write(packed: IO[bytes], bucket: Bucket, manifest: Manifest, progress: Reported) -> None:
    chunks = fetched(bucket, manifest, progress)
    content = Content(chunks)
    try:
        with tarfile.open(fileobj=packed, mode="w|") as tar:
            tar.copybufsize = COPY_BYTES  # type: ignore[attr-defined] # its stubs do not know it
            for file in manifest.files:
                member = tarfile.TarInfo(
                    file.path if manifest.unit == "files" else f"{manifest.folder}/{file.path}"
                )
                member.size, member.mtime = file.size, file.mtime_s
                tar.addfile(member, content)
    finally:
        chunks.close()


def fetched(bucket: Bucket, manifest: Manifest, progress: Reported) -> Generator[Data]:
    """Yield the content of all files in order, while later chunks are already being fetched."""
    done = 0

    def one(place: ChunkPosition) -> Data:
        try:
            return fetch(bucket, manifest.holder, place.chunk)
        except Damaged as error:
            raise CheckpointDamaged(
                f"step {manifest.step} is damaged in the bucket: {place} {error}", [place.chunk.digest]
            ) from error

    with ThreadPoolExecutor(AHEAD_MAX) as pool:
        waiting: deque[Future[Data]] = deque()
        left = places(manifest)
        while True:
            waiting.extend(pool.submit(one, place) for place in islice(left, AHEAD_MAX - len(waiting)))
            if not waiting:
                return
            data = waiting.popleft().result()
            done += len(data)
            progress(done, manifest.size)
            yield data


class Content:
    """The file object that tarfile reads: the chunks of all files, one after the other."""

    def __init__(self, chunks: Generator[Data]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def read(self, size: int = -1) -> bytes:
        """Return at most the rest of the current chunk: files and chunks are cut so that a read of COPY_BYTES
        never spans two.
        """
        while not self._left:
            data = next(self._chunks, None)
            if data is None:
                return b""
            self._left = memoryview(data).cast("B")
        taken, self._left = self._left[:size], self._left[size:]
        return bytes(taken)

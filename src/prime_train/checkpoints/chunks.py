"""The chunks of a checkpoint's files: fetched one at a time from the bucket and verified."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prime_train.buckets.keys import blob_key
from prime_train.buckets.port import Bucket, Data
from prime_train.checkpoints.codec import Codec, decode
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import CHUNK_BYTES, Chunk, Manifest, ManifestFile

READS_MAX = 2
"""Times a chunk is read before it counts as damaged in the bucket, because the damage may have happened in
transit.
"""


class Damaged(Exception):
    """A chunk in the bucket differs from what was saved; the message is a predicate that follows the file's
    name.
    """


@dataclass(frozen=True)
class ChunkPosition:
    """The position of a chunk in its file: number `index`, at `offset` bytes."""

    file: ManifestFile
    index: int

    @property
    def chunk(self) -> Chunk:
        return self.file.chunks[self.index]

    @property
    def offset(self) -> int:
        return self.index * CHUNK_BYTES

    def __str__(self) -> str:
        return (
            self.file.path
            if len(self.file.chunks) == 1
            else f"{self.file.path} (chunk {self.index + 1} of {len(self.file.chunks)})"
        )


def places(manifest: Manifest) -> Iterator[ChunkPosition]:
    return (ChunkPosition(file, index) for file in manifest.files for index in range(len(file.chunks)))


def fetch(bucket: Bucket, run_id: str, chunk: Chunk) -> Data:
    """Return the content of a checkpoint's chunk that the run `run_id` holds. Raises as `fetch_blob`."""
    return fetch_blob(bucket, blob_key(run_id, chunk.digest, chunk.codec), chunk)


def fetch_blob(bucket: Bucket, key: str, chunk: Chunk) -> Data:
    """Return the content of the chunk that is stored under `key`. Raises Damaged if the bucket does not hold
    it as it was saved, and what the bucket raises.
    """
    for reading in range(1, READS_MAX + 1):
        try:
            return _fetch(bucket, key, chunk)
        except Damaged:
            if reading == READS_MAX:
                raise
    raise AssertionError("READS_MAX must be at least 1")


def _fetch(bucket: Bucket, key: str, chunk: Chunk) -> Data:
    stored = bucket.read(key)
    if stored is None:
        raise Damaged("is missing")
    if len(stored) != chunk.stored:
        raise Damaged(f"has {len(stored)} bytes in the bucket instead of {chunk.stored}")
    try:
        raw = decode(Codec(chunk.codec), stored, chunk.size)
    except ValueError as error:
        raise Damaged(f"cannot be decoded: {str(error)[:200]}") from error
    if digest_of(raw) != chunk.digest:
        raise Damaged("has a different content than was saved")
    return raw


def is_there(path: Path, place: ChunkPosition) -> bool:
    """Return whether the file at `path` already holds this chunk at its place."""
    with path.open("rb", buffering=0) as file:
        data = os.pread(file.fileno(), place.chunk.size, place.offset)
    return len(data) == place.chunk.size and digest_of(data) == place.chunk.digest

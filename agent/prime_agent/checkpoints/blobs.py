"""The blobs of one run in the bucket: each content is uploaded once, and unreferenced blobs are removed.

Blobs are named by the hash of their content, so a blob that is already in the bucket need not be uploaded
again if it is known to be intact and not about to be removed. That is known of blobs listed by the manifest
resumed from, or by a committed manifest of this attempt, and of blobs written within the last `FRESH_S`
seconds, by this agent or an earlier one of the same attempt: no clean-up removes those yet, and the bucket
verifies what it receives. An upload in progress holds its blobs, so that no clean-up removes one between the
check that it exists and the manifest that lists it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator

from prime_train.buckets.keys import blob_key
from prime_train.buckets.port import Bucket, Data
from prime_train.checkpoints.catalog import Blob, Catalog
from prime_train.checkpoints.codec import Codec
from prime_train.checkpoints.manifest import Chunk, Manifest
from prime_train.runs.resume_point import BLOB_GRACE_S

FRESH_S = BLOB_GRACE_S // 2
"""Maximum age of a blob that is certain to exist still when the manifest is written; the other half of the
grace period allows for clock differences.
"""


class Blobs:
    """Blobs of one run; the threads that upload and the one that cleans up may use it concurrently."""

    def __init__(self, bucket: Bucket, run_id: str, clock: Callable[[], int]) -> None:
        self._bucket = bucket
        self._run_id = run_id
        self._clock = clock
        self._lock = threading.Lock()
        self._listed: dict[str, Chunk] = {}
        self._sent_s: dict[str, int] = {}
        self._stored: set[str] = set()
        self._there: dict[str, Blob] = {}
        self._damaged: frozenset[str] = frozenset()
        self._first_named: dict[str, str] = {}

    def trust(self, manifest: Manifest) -> None:
        """Mark the blobs of this manifest as intact, so that they are not uploaded again."""
        with self._lock:
            self._listed |= {chunk.digest: chunk for file in manifest.files for chunk in file.chunks}

    def distrust(self, digests: Iterable[str]) -> None:
        """Mark the blobs with these digests as damaged in the bucket, so that they are uploaded again."""
        self._damaged = self._damaged | frozenset(digests)

    def named(self, manifest: Manifest) -> None:
        """Record which manifest was the first of this attempt to name each of its chunks."""
        with self._lock:
            for file in manifest.files:
                for chunk in file.chunks:
                    self._first_named.setdefault(chunk.digest, manifest.key)

    def was_sent(self, chunk: Chunk, *, by: str) -> bool:
        """Return whether this attempt sent the chunk for the manifest with the key `by`, and not for an older
        one.
        """
        with self._lock:
            return (
                blob_key(self._run_id, chunk.digest, chunk.codec) in self._sent_s
                and self._first_named.get(chunk.digest) == by
            )

    def see(self, catalog: Catalog) -> None:
        """Record which blobs are in the bucket, before an upload."""
        with self._lock:
            self._there = dict(catalog.blobs)

    def known(self, digest: str, size: int) -> Chunk | None:
        """Return how this content is already stored in the bucket, or None if it has to be uploaded. In both
        cases the content is held from now on.
        """
        with self._lock:
            self._stored.add(digest)
            if digest in self._damaged:
                return None
            listed = self._listed.get(digest)
            chunks = [
                Chunk(digest=digest, size=size, stored=blob.size, codec=codec)
                for codec, blob in self._found(digest, size)
            ]
            return next((chunk for chunk in chunks if chunk == listed or self._is_fresh(chunk)), None)

    def _found(self, digest: str, size: int) -> Iterator[tuple[Codec, Blob]]:
        """Yield the blobs of this content that the bucket holds with a plausible size; truncated ones are
        left out.
        """
        for codec in Codec:
            blob = self._there.get(blob_key(self._run_id, digest, codec))
            if blob is not None and (blob.size == size if codec is Codec.NONE else 0 < blob.size <= size):
                yield codec, blob

    def _is_fresh(self, chunk: Chunk) -> bool:
        key = blob_key(self._run_id, chunk.digest, chunk.codec)
        return self._clock() - max(self._sent_s.get(key, 0), self._there[key].written_s) < FRESH_S

    def put(self, chunk: Chunk, stored: Data) -> None:
        """Upload the stored form of a chunk. Raises the bucket's errors."""
        key = blob_key(self._run_id, chunk.digest, chunk.codec)
        self._bucket.put(key, stored)
        with self._lock:
            self._sent_s[key] = self._clock()
            self._there[key] = Blob(chunk.stored, self._clock())
            self._damaged = self._damaged - {chunk.digest}

    def forget(self, keys: Iterable[str]) -> None:
        """Record that the blobs with these keys are not in the bucket after all."""
        with self._lock:
            for key in keys:
                self._forget(key)

    def release(self) -> None:
        """Release all held blobs, because no upload is in progress any more."""
        with self._lock:
            self._stored.clear()

    def remove(self, key: str) -> bool:
        """Delete a blob, unless an upload in progress needs it. Return whether it was deleted."""
        digest = _digest(key)
        with self._lock:
            if digest in self._stored:
                return False
            self._forget(key)
            self._bucket.delete(key)
            return True

    def _forget(self, key: str) -> None:
        self._listed.pop(_digest(key), None)
        self._sent_s.pop(key, None)
        self._there.pop(key, None)
        self._first_named.pop(_digest(key), None)


def _digest(key: str) -> str:
    return key.rsplit("/", 1)[-1].partition(".")[0]

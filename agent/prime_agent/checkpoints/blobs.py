"""The blobs of one run in the bucket: sending each content once, and removing those that nothing refers to.

Blobs are named by their content, so one that is there need not be sent again, if it is known to be whole and to stay. Known are those
listed by the manifest resumed from or by a manifest of our own that was committed, and those that were written a short while ago, by us or
by an agent of this attempt that died: no clean-up touches them yet, and the bucket checks what it is sent. An upload under way holds its
blobs: between "it is there" and "a manifest lists it" no clean-up may take it away.
"""

import threading
from collections.abc import Callable, Iterable, Iterator

from prime_train.checkpoints.catalog import Blob, Catalog
from prime_train.checkpoints.codec import Codec
from prime_train.core.keys import blob_key
from prime_train.core.manifest import BLOB_GRACE_S, Chunk, Manifest
from prime_train.ports import Bucket, Data

FRESH_S = BLOB_GRACE_S // 2
"""So old a blob may be, and certainly be there when the manifest is: the other half is for clocks that differ."""


class Blobs:
    """Used by the threads that upload and the one that cleans up at the same time."""

    def __init__(self, bucket: Bucket, run_id: str, clock: Callable[[], int]) -> None:
        self._bucket = bucket
        self._run_id = run_id
        self._clock = clock
        self._lock = threading.Lock()
        self._listed: dict[str, Chunk] = {}
        self._sent_s: dict[str, int] = {}
        self._held: set[str] = set()
        self._there: dict[str, Blob] = {}
        self._damaged: frozenset[str] = frozenset()

    def trust(self, manifest: Manifest) -> None:
        """The blobs of this manifest need not be sent again."""
        with self._lock:
            self._listed |= {chunk.digest: chunk for file in manifest.files for chunk in file.chunks}

    def distrust(self, digests: Iterable[str]) -> None:
        """What lies in the bucket under these names is not what they say: it is sent anew."""
        self._damaged = self._damaged | frozenset(digests)

    def see(self, catalog: Catalog) -> None:
        """What is in the bucket now, before an upload."""
        with self._lock:
            self._there = dict(catalog.blobs)

    def known(self, digest: str, size: int) -> Chunk | None:
        """How this content lies in the bucket already, if it need not be sent. It is held from now on, either way."""
        with self._lock:
            self._held.add(digest)
            if digest in self._damaged:
                return None
            listed = self._listed.get(digest)
            chunks = [Chunk(digest=digest, size=size, stored=blob.size, codec=codec) for codec, blob in self._found(digest, size)]
            return next((chunk for chunk in chunks if chunk == listed or self._is_fresh(chunk)), None)

    def _found(self, digest: str, size: int) -> Iterator[tuple[Codec, Blob]]:
        """The blobs of this content that are there, and can be whole by their size."""
        for codec in Codec:
            blob = self._there.get(blob_key(self._run_id, digest, codec))
            if blob is not None and (blob.size == size if codec is Codec.NONE else 0 < blob.size <= size):
                yield codec, blob

    def _is_fresh(self, chunk: Chunk) -> bool:
        key = blob_key(self._run_id, chunk.digest, chunk.codec)
        return self._clock() - max(self._sent_s.get(key, 0), self._there[key].written_s) < FRESH_S

    def put(self, chunk: Chunk, stored: Data) -> None:
        """Sends the stored form of a chunk. Raises what the bucket raises."""
        key = blob_key(self._run_id, chunk.digest, chunk.codec)
        self._bucket.put(key, stored)
        with self._lock:
            self._sent_s[key] = self._clock()
            self._there[key] = Blob(chunk.stored, self._clock())
            self._damaged = self._damaged - {chunk.digest}

    def forget(self, keys: Iterable[str]) -> None:
        """They are not there after all."""
        with self._lock:
            for key in keys:
                self._forget(key)

    def release(self) -> None:
        """No upload is under way any more."""
        with self._lock:
            self._held.clear()

    def remove(self, key: str) -> None:
        """Deletes a blob, unless an upload under way needs it."""
        digest = _digest(key)
        with self._lock:
            if digest in self._held:
                return
            self._forget(key)
            self._bucket.delete(key)

    def _forget(self, key: str) -> None:
        self._listed.pop(_digest(key), None)
        self._sent_s.pop(key, None)
        self._there.pop(key, None)


def _digest(key: str) -> str:
    return key.rsplit("/", 1)[-1].partition(".")[0]

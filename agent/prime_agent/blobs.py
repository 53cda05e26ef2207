"""The blobs of one run in the bucket: sending them once, and removing those that nothing refers to.

Blobs are named by their content, so a blob that is there need not be sent again, if it is known to be whole and to stay. Known are those
listed by the manifest resumed from or by a manifest of our own that was committed, and those we sent ourselves a short while ago, which no
clean-up touches yet. An upload under way holds its blobs: between "it is there" and "a manifest lists it" no clean-up may take it away.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from prime_agent.digests import Cancelled
from prime_agent.stage import Vanished
from prime_train.core.keys import blob_key, blob_prefix
from prime_train.core.manifest import BLOB_GRACE_S, Manifest
from prime_train.ports import Bucket, TemporaryError

WORKERS_MAX = 8

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Source:
    """Where the content of a blob lies on disk, and how the file looked before it was hashed."""

    digest: str
    size: int
    mtime_s: float
    path: Path

    def changed(self) -> bool:
        status = self.path.stat()
        return (status.st_size, status.st_mtime) != (self.size, self.mtime_s)


def in_parallel(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` of every item, in their order. After the first failure nothing new is begun, and what it raised is raised."""
    with ThreadPoolExecutor(WORKERS_MAX) as pool:
        futures = [pool.submit(work, item) for item in items]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        failures = [failure for future in done if not future.cancelled() and (failure := future.exception())]
        if failures:
            pool.shutdown(wait=True, cancel_futures=True)
            raise failures[0]
        return [future.result() for future in futures]


class Blobs:
    """Used by the thread that uploads and the one that cleans up at the same time."""

    def __init__(self, bucket: Bucket, run_id: str, clock: Callable[[], int]) -> None:
        self._bucket = bucket
        self._run_id = run_id
        self._clock = clock
        self._lock = threading.Lock()
        self._listed: dict[str, int] = {}
        self._sent_s: dict[str, int] = {}
        self._held: set[str] = set()

    def trust(self, manifest: Manifest) -> None:
        """The blobs of this manifest need not be sent again."""
        with self._lock:
            self._listed |= {file.digest: file.size for file in manifest.files}

    @contextmanager
    def holding(self, digests: Iterable[str]) -> Iterator[None]:
        """Within it, `remove` leaves these blobs alone."""
        mine = set(digests)
        with self._lock:
            self._held |= mine
        try:
            yield
        finally:
            with self._lock:
                self._held -= mine

    def send(self, sources: Iterable[Source], *, cancelled: Callable[[], bool]) -> None:
        """Puts those that are not known to be there, and checks every size in the bucket. Call it while `holding`. Raises Vanished when
        a file is no longer what was hashed, Cancelled, and what the bucket raises.
        """

        def one(source: Source) -> None:
            if cancelled():
                raise Cancelled("the upload was called off")
            self._send(source)

        in_parallel(one, sources)

    def _send(self, source: Source) -> None:
        key = blob_key(self._run_id, source.digest)
        if self._known(source) and self._size_of(key) == source.size:
            return
        self._bucket.put_file(key, source.path)
        if source.changed():
            # A trainer that overwrites a file reaches our hard link of it too: what was sent is not what was hashed.
            self._forget(source.digest)
            self._bucket.delete(key)
            raise Vanished("the trainer wrote into the checkpoint while it was uploaded; set checkpoints.in_place")
        size = self._size_of(key)
        if size != source.size:
            raise TemporaryError(f"{key} has {size} bytes in the bucket and {source.size} on disk")
        with self._lock:
            self._sent_s[source.digest] = self._clock()

    def _known(self, source: Source) -> bool:
        with self._lock:
            sent_s = self._sent_s.get(source.digest)
            fresh = sent_s is not None and self._clock() - sent_s < BLOB_GRACE_S // 2
            return fresh or self._listed.get(source.digest) == source.size

    def _size_of(self, key: str) -> int | None:
        stat = self._bucket.stat(key)
        return stat.size if stat else None

    def written(self) -> Mapping[str, tuple[int, int]]:
        """Size in bytes and second of writing of every blob, by key."""
        return {stat.key: (stat.size, stat.written_s) for stat in self._bucket.list(blob_prefix(self._run_id))}

    def remove(self, key: str) -> None:
        """Deletes a blob, unless an upload under way needs it."""
        digest = key.rsplit("/", 1)[-1]
        with self._lock:
            if digest in self._held:
                return
            self._listed.pop(digest, None)
            self._sent_s.pop(digest, None)
            self._bucket.delete(key)

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._listed.pop(digest, None)
            self._sent_s.pop(digest, None)

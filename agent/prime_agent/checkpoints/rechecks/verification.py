"""Reads checkpoints back from the bucket, to find damage while this machine still has the files.

A content that several checkpoints share is sent once, so damage to it would spread to every later checkpoint.
While the run trains, what a new checkpoint shares with older ones is read back at a low rate, what was read
longest ago first; a newer checkpoint replaces the one that is being read. Before a run succeeds, all of its
last checkpoint is read. A damaged chunk is sent again from a file on this machine that still has the content;
otherwise it is distrusted, so that the next upload of the content sends it anew.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.checkpoints.thread_priority import step_back
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.chunks import ChunkPosition, Damaged, fetch, places
from prime_train.checkpoints.codec import Codec, encode
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.verify import DamagedFile, verify
from prime_train.errors import ExternalError, PermanentError
from prime_train.spec.choices import Verify

RETRY_S = 30.0
"""Seconds until a check that the bucket did not answer is tried again."""
DAMAGE_CHARS_MAX = 400

_log = logging.getLogger(__name__)


class Verification:
    """The verification of one attempt's checkpoints. `roots`: returns the folders on this machine that the
    paths of a manifest's files may be relative to, the most likely first; `bytes_per_s`: highest rate while
    the run trains; `stopped` ends the thread.
    """

    def __init__(
        self,
        bucket: Bucket,
        blobs: Blobs,
        *,
        roots: Callable[[Manifest], Iterable[Path]],
        bytes_per_s: float,
        stopped: threading.Event,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._bucket, self._blobs, self._roots = bucket, blobs, roots
        self._bytes_per_s, self._stopped, self._monotonic_s = bytes_per_s, stopped, monotonic_s
        self._read_s: dict[str, float] = {}
        self._newest: Manifest | None = None
        self._news = threading.Condition()

    def start(self) -> None:
        """Start the thread that reads what new checkpoints share with older ones."""
        threading.Thread(target=self._run, name="verification", daemon=True).start()

    def begin(self, manifest: Manifest) -> None:
        """Read this checkpoint next, instead of an older one."""
        with self._news:
            self._newest = manifest
            self._news.notify()

    def shared(self, manifest: Manifest) -> int:
        """Read once what the checkpoint shares with older ones, at the limited rate, until a newer checkpoint
        replaces it; return the number of damaged chunks that could not be sent again. Raises the bucket's
        errors.
        """
        lost = 0
        wanted = [
            place for place in _alone(manifest) if not self._blobs.was_sent(place.chunk, by=manifest.key)
        ]
        for place in sorted(wanted, key=lambda place: self._read_s.get(place.chunk.digest, 0.0)):
            if self._stopped.is_set() or self._newest is not manifest:
                break
            lost += not self._check(manifest, place)
            self._stopped.wait(place.chunk.stored / self._bytes_per_s)
        return lost

    def whole(self, manifest: Manifest) -> str:
        """Read all of the checkpoint, send again what is damaged, and return what remains damaged, as text;
        "" if nothing does. A bucket that does not answer is asked again until `stopped`. Raises its errors.
        """
        while True:
            try:
                damaged = self._damaged(manifest)
            except PermanentError:
                raise
            except ExternalError:
                if self._stopped.wait(RETRY_S):
                    raise
            else:
                return "; ".join(f"{file.path} {file.what}" for file in damaged)[:DAMAGE_CHARS_MAX]

    def _damaged(self, manifest: Manifest) -> list[DamagedFile]:
        damaged = verify(self._bucket, manifest)
        digests = {file.digest for file in damaged}
        healed = [self._heal(manifest, place) for place in _alone(manifest) if place.chunk.digest in digests]
        return verify(self._bucket, manifest) if any(healed) else damaged

    def _run(self) -> None:
        step_back()
        while not self._stopped.is_set():
            with self._news:
                manifest = self._newest
                if manifest is None:
                    self._news.wait()
                    continue
            try:
                self.shared(manifest)
            except ExternalError as error:
                _log.info(
                    "what the checkpoint of step %d shares with older ones could not be read back: %s",
                    manifest.step,
                    error,
                )
            with self._news:
                if self._newest is manifest:
                    self._newest = None

    def _check(self, manifest: Manifest, place: ChunkPosition) -> bool:
        """Return whether the chunk is intact in the bucket, if need be because it was sent again."""
        self._read_s[place.chunk.digest] = self._monotonic_s()
        try:
            fetch(self._bucket, manifest.holder, place.chunk)
        except Damaged as error:
            _log.error("step %d in the bucket: %s %s", manifest.step, place, error)
            return self._heal(manifest, place)
        return True

    def _heal(self, manifest: Manifest, place: ChunkPosition) -> bool:
        """Send the chunk again from a file on this machine, in the form that every manifest lists; return
        whether that was possible.
        """
        chunk = place.chunk
        raw = next(self._local(manifest, place), None)
        stored = encode(Codec(chunk.codec), raw) if raw is not None and chunk.codec else raw
        if stored is None or len(stored) != chunk.stored:
            self._blobs.distrust({chunk.digest})
            return False
        self._blobs.put(chunk, stored)
        _log.warning(
            "%s of step %d was damaged in the bucket, and was sent again from this machine",
            place,
            manifest.step,
        )
        return True

    def _local(self, manifest: Manifest, place: ChunkPosition) -> Iterator[bytes]:
        """Yield the content of the chunk from each file on this machine that has it."""
        for root in self._roots(manifest):
            try:
                with (root / place.file.path).open("rb", buffering=0) as file:
                    data = os.pread(file.fileno(), place.chunk.size, place.offset)
            except OSError:
                continue
            if len(data) == place.chunk.size and digest_of(data) == place.chunk.digest:
                yield data


def _alone(manifest: Manifest) -> list[ChunkPosition]:
    """Return one place for each content of the checkpoint."""
    return list({place.chunk.digest: place for place in places(manifest)}.values())


def reads_back(wanted: Verify, bucket_url: str) -> bool:
    """Return whether what checkpoints share is read back while the run trains. Most clouds charge for reads
    from outside, so by default only a folder is read.
    """
    return wanted is Verify.ALL or (wanted is Verify.AUTO and bucket_url.startswith("file:"))

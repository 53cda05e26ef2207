"""Verifies every byte of a checkpoint in the bucket and lists what is wrong with it."""

import threading
from dataclasses import dataclass

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.chunks import ChunkPosition, Damaged, fetch, places
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.parallel import in_parallel
from prime_train.checkpoints.restore import Reported, unreported


@dataclass(frozen=True)
class DamagedFile:
    """A file whose copy in the bucket differs from what was saved. `digest`: the digest of the damaged
    chunk.
    """

    path: str
    what: str
    digest: str


def verify(bucket: Bucket, manifest: Manifest, *, progress: Reported = unreported) -> list[DamagedFile]:
    """Return every chunk that is missing or has another content, in the order of the manifest. Raises the
    bucket's errors.

    A content that occurs in several places is read once.
    """
    lock = threading.Lock()
    done = 0

    def one(place: ChunkPosition) -> str | None:
        nonlocal done
        try:
            fetch(bucket, manifest.holder, place.chunk)
        except Damaged as error:
            return str(error)
        finally:
            with lock:
                done += place.chunk.size
                progress(done, total)
        return None

    alone = {(place.chunk.digest, place.chunk.codec): place for place in places(manifest)}
    total = sum(place.chunk.size for place in alone.values())
    problems = dict(zip(alone, in_parallel(one, alone.values()), strict=True))
    found = [(place, problems[place.chunk.digest, place.chunk.codec]) for place in places(manifest)]
    return [DamagedFile(str(place), what, place.chunk.digest) for place, what in found if what is not None]

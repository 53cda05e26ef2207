"""Reading of manifests from the bucket."""

from itertools import islice

from prime_train.buckets.keys import manifest_prefix, parse_manifest_key
from prime_train.buckets.port import GET_BYTES_MAX, Bucket, small_object
from prime_train.checkpoints.manifest import Manifest

MANIFESTS_READ_MAX = 1000
MANIFESTS_BYTES_MAX = 128 * 2**20
"""Bytes of the manifests of a run that are read at once: those of twenty checkpoints of a terabyte, and what
a watcher has memory for.
"""
LISTED_MAX = 100_000


def read_manifests(
    bucket: Bucket, run_id: str, *, attempt: int | None = None, manifests_max: int = MANIFESTS_READ_MAX
) -> list[Manifest]:
    """Return the manifests of a run (of one attempt), newest step first, at most `manifests_max`, and of them
    no more than `MANIFESTS_BYTES_MAX` bytes. A manifest that cannot be parsed, or is larger than any agent
    writes, is left out, because it commits nothing.
    """
    small = [
        stat
        for stat in islice(bucket.list(manifest_prefix(run_id)), LISTED_MAX)
        if stat.size <= GET_BYTES_MAX
    ]
    stats = [(parse_manifest_key(run_id, stat.key), stat) for stat in small]
    mine = [stat for place, stat in stats if place is not None and (attempt is None or place[1] == attempt)]
    found: list[Manifest] = []
    left = MANIFESTS_BYTES_MAX
    for stat in sorted(mine, key=lambda stat: stat.key, reverse=True)[:manifests_max]:
        left -= stat.size
        if left < 0:
            break
        manifest = _read(bucket, stat.key)
        if manifest is not None:
            found.append(manifest)
    return found


def read_manifest(bucket: Bucket, key: str) -> Manifest | None:
    """Return the manifest at `key`; None if there is none, or it is left out as in `read_manifests`."""
    stat = bucket.stat(key)
    return _read(bucket, key) if stat is not None and stat.size <= GET_BYTES_MAX else None


def _read(bucket: Bucket, key: str) -> Manifest | None:
    content = small_object(bucket, key)
    manifest = parse_manifest(content.data) if content is not None else None
    return manifest if manifest is not None and manifest.key == key else None


def parse_manifest(data: bytes) -> Manifest | None:
    """Return the manifest; None for anything that is not a complete manifest."""
    try:
        return Manifest.model_validate_json(data)
    except ValueError:
        return None

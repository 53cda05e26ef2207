"""Reading of manifests from the bucket."""

from prime_train.core.keys import manifest_prefix, parse_manifest_key
from prime_train.core.manifest import Manifest
from prime_train.ports import GET_BYTES_MAX, Bucket

MANIFESTS_READ_MAX = 1000


def read_manifests(bucket: Bucket, run_id: str, *, attempt: int | None = None, manifests_max: int = MANIFESTS_READ_MAX) -> list[Manifest]:
    """Return the manifests of a run (of one attempt), newest step first, at most `manifests_max`. A manifest that cannot be parsed, or
    is larger than any agent writes, is left out, because it commits nothing."""
    small = [stat for stat in bucket.list(manifest_prefix(run_id)) if stat.size <= GET_BYTES_MAX]
    stats = [(parse_manifest_key(run_id, stat.key), stat.key) for stat in small]
    keys = [key for place, key in stats if place is not None and (attempt is None or place[1] == attempt)]
    found = []
    for key in sorted(keys, reverse=True)[:manifests_max]:
        manifest = _read(bucket, key)
        if manifest is not None:
            found.append(manifest)
    return found


def read_manifest(bucket: Bucket, key: str) -> Manifest | None:
    """Return the manifest at `key`; None if there is none, or it is left out as in `read_manifests`."""
    stat = bucket.stat(key)
    return _read(bucket, key) if stat is not None and stat.size <= GET_BYTES_MAX else None


def _read(bucket: Bucket, key: str) -> Manifest | None:
    content = bucket.get(key)
    manifest = parse_manifest(content.data) if content is not None else None
    return manifest if manifest is not None and manifest.key == key else None


def parse_manifest(data: bytes) -> Manifest | None:
    """Return the manifest; None for anything that is not a complete manifest."""
    try:
        return Manifest.model_validate_json(data)
    except ValueError:
        return None

"""Reading of manifests from the bucket."""

from prime_train.core.keys import manifest_prefix, parse_manifest_key
from prime_train.core.manifest import Manifest
from prime_train.ports import Bucket

MANIFESTS_READ_MAX = 1000


def read_manifests(bucket: Bucket, run_id: str, *, attempt: int | None = None, manifests_max: int = MANIFESTS_READ_MAX) -> list[Manifest]:
    """Return the manifests of a run (of one attempt), newest step first, at most `manifests_max`. A manifest that cannot be parsed is
    left out, because it commits nothing."""
    stats = [(parse_manifest_key(run_id, stat.key), stat.key) for stat in bucket.list(manifest_prefix(run_id))]
    keys = [key for place, key in stats if place is not None and (attempt is None or place[1] == attempt)]
    found = []
    for key in sorted(keys, reverse=True)[:manifests_max]:
        content = bucket.get(key)
        manifest = parse_manifest(content.data) if content is not None else None
        if manifest is not None and manifest.key == key:
            found.append(manifest)
    return found


def parse_manifest(data: bytes) -> Manifest | None:
    """Return the manifest; None for anything that is not a complete manifest."""
    try:
        return Manifest.model_validate_json(data)
    except ValueError:
        return None

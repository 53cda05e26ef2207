"""`latest.json`: which checkpoint is the newest, for people and other tools. Nothing of ours decides by it."""

import json

from prime_train.core.keys import latest_key
from prime_train.core.manifest import Manifest
from prime_train.ports import Bucket, TemporaryError

TRIES_MAX = 5


def move_latest(bucket: Bucket, manifest: Manifest, now_s: int) -> bool:
    """Points `latest.json` at this manifest by a conditional put. False: it already points at it, at a later attempt, or a later step."""
    key = latest_key(manifest.run)
    facts = {"run": manifest.run, "attempt": manifest.attempt, "step": manifest.step, "manifest": manifest.key, "committed_s": now_s}
    data = (json.dumps(facts) + "\n").encode()
    for _ in range(TRIES_MAX):
        current = bucket.get(key)
        if current is not None and _rank(current.data) >= (manifest.attempt, manifest.step):
            return False
        if bucket.put_if(key, data, tag=current.tag if current else None):
            return True
    raise TemporaryError(f"{key} was changed by others {TRIES_MAX} times while it was written")


def _rank(data: bytes) -> tuple[int, int]:
    """AttemptNumber and step it points at; below all others when it cannot be read."""
    try:
        facts = json.loads(data)
        return int(facts["attempt"]), int(facts["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1, -1

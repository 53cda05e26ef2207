"""`latest.json`, which names the newest checkpoint for people and other tools. prime-train itself never reads it to decide anything."""

import json

from prime_train.core.keys import latest_key
from prime_train.core.manifest import Manifest
from prime_train.ports import Bucket, ObjectTooLarge, TemporaryError

TRIES_MAX = 5


def move_latest(bucket: Bucket, manifest: Manifest, now_s: int) -> bool:
    """Point `latest.json` at this manifest by a conditional write.

    Return False if it already points at this manifest, a later attempt or a later step. Raises TemporaryError if others changed it
    `TRIES_MAX` times.
    """
    key = latest_key(manifest.run)
    facts = {"run": manifest.run, "attempt": manifest.attempt, "step": manifest.step, "manifest": manifest.key, "committed_s": now_s}
    data = (json.dumps(facts) + "\n").encode()
    for _ in range(TRIES_MAX):
        try:
            current = bucket.get(key)
        except ObjectTooLarge:  # whoever wrote that, it is no pointer
            bucket.put(key, data)
            return True
        if current is not None and _rank(current.data) >= (manifest.attempt, manifest.step):
            return False
        if bucket.put_if(key, data, tag=current.tag if current else None):
            return True
    raise TemporaryError(f"{key} was changed by other writers during all {TRIES_MAX} tries")


def _rank(data: bytes) -> tuple[int, int]:
    """Return the attempt number and the step in the content of `latest.json`, or (-1, -1) if it cannot be parsed."""
    try:
        facts = json.loads(data)
        return int(facts["attempt"]), int(facts["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1, -1

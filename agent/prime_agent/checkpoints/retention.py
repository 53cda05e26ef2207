"""What follows a commit in the bucket: `latest.json` is moved, and what need not be kept is deleted.

The clean-up goes by the policy of the spec, and is limited in time so that it ends before another attempt can
take over.
"""

import json
from collections.abc import Callable

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.deletions import DeletionCounter
from prime_train.buckets.keys import latest_key
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.prune import carry_out, plan
from prime_train.checkpoints.retention import RetentionPolicy
from prime_train.errors import ObjectTooLarge, TemporaryError
from prime_train.runs.resume_point import ResumePoint

PRUNE_S_MAX = 60
"""Seconds after which a clean-up is abandoned, because another attempt may have taken over meanwhile and
chosen what to resume.
"""


class Retention:
    """Clean-up that keeps the checkpoints that the policy keeps, and the one that was resumed from."""

    def __init__(
        self,
        bucket: Bucket,
        blobs: Blobs,
        run_id: str,
        *,
        policy: RetentionPolicy,
        pinned: ResumePoint | None,
        clock: Callable[[], int],
        deletions: DeletionCounter | None = None,
    ) -> None:
        self._bucket = bucket
        self._blobs = blobs
        self._policy = policy
        self._pinned = {pinned.key} if pinned else set()
        self._clock = clock
        self._deletions = deletions or DeletionCounter(lambda total: None)
        self._reader = Reader(bucket, run_id)

    def prune(self, *, committed_step: int, committed_s: int) -> None:
        """Delete checkpoints that need not be kept. Raises the bucket's errors; what remains is deleted by
        the next clean-up.
        """
        catalog = self._reader.catalog()
        planned = plan(
            catalog, self._policy, committed_step=committed_step, pinned=self._pinned, now_s=committed_s
        )

        def remove(key: str) -> None:
            if self._blobs.remove(key):
                self._deletions.chunk(planned.sizes.get(key, 0))

        carry_out(
            self._bucket,
            planned,
            remove=remove,
            too_late=lambda: self._clock() - committed_s > PRUNE_S_MAX,
            told=lambda kept: self._deletions.checkpoint(kept.step),
        )


TRIES_MAX = 5


def move_latest(bucket: Bucket, manifest: Manifest, now_s: int) -> bool:
    """Point `latest.json`, which names the newest checkpoint for people and other tools, at this manifest by
    a conditional write. prime-train itself never reads it to decide anything.

    Return False if it already points at this manifest, a later attempt or a later step. Raises TemporaryError
    if others changed it `TRIES_MAX` times.
    """
    key = latest_key(manifest.run)
    facts = {
        "run": manifest.run,
        "attempt": manifest.attempt,
        "step": manifest.step,
        "manifest": manifest.key,
        "committed_s": now_s,
    }
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
    """Return the attempt number and the step in the content of `latest.json`, or (-1, -1) if it cannot be
    parsed."""
    try:
        facts = json.loads(data)
        return int(facts["attempt"]), int(facts["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1, -1

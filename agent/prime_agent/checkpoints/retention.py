"""Clean-up of the bucket after a commit, by the policy of the spec, and limited in time so that it ends before another attempt can take
over."""

from collections.abc import Callable

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.deletions import DeletionCounter
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.prune import carry_out, plan
from prime_train.core.manifest import ResumePoint
from prime_train.core.retention import Policy
from prime_train.ports import Bucket

PRUNE_S_MAX = 60
"""Seconds after which a clean-up is abandoned, because another attempt may have taken over meanwhile and chosen what to resume."""


class Retention:
    """Clean-up that keeps the checkpoints that the policy keeps, and the one that was resumed from."""

    def __init__(
        self,
        bucket: Bucket,
        blobs: Blobs,
        run_id: str,
        *,
        policy: Policy,
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
        """Delete checkpoints that need not be kept. Raises the bucket's errors; what remains is deleted by the next clean-up."""
        catalog = self._reader.catalog()
        planned = plan(catalog, self._policy, committed_step=committed_step, pinned=self._pinned, now_s=committed_s)

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

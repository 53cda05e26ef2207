"""What the bucket may forget after a commit: old manifests first, then the blobs that no manifest lists any more.

In this order a cut anywhere leaves at most blobs that nobody needs. At least one complete checkpoint, the resume point and everything
from the committed step on stay, whatever else is asked for.
"""

import logging
from collections.abc import Callable, Mapping

from prime_agent.blobs import Blobs
from prime_train.core.keys import manifest_prefix, parse_manifest_key
from prime_train.core.manifest import Manifest, ResumePoint, expired, missing_blobs, unreferenced
from prime_train.ports import Bucket, Stat

PRUNE_S_MAX = 60
"""A clean-up that takes longer than this is given up: meanwhile another attempt may have taken over, and chosen what to resume."""

MANIFESTS_MAX = 10_000

_log = logging.getLogger(__name__)


class Retention:
    """Keeps the newest `keep` complete checkpoints of a run, and the one that was resumed from."""

    def __init__(
        self, bucket: Bucket, blobs: Blobs, run_id: str, *, keep: int, pinned: ResumePoint | None, clock: Callable[[], int]
    ) -> None:
        self._bucket = bucket
        self._blobs = blobs
        self._run_id = run_id
        self._keep = keep
        self._pinned = {pinned.key} if pinned else set()
        self._clock = clock
        self._read: dict[Stat, Manifest] = {}

    def prune(self, *, committed_step: int, committed_s: int) -> None:
        """Deletes what may go. Raises what the bucket raises; whatever was left over goes the next time."""
        # Blobs are listed before manifests: a manifest that comes in between lists blobs that are young, held or listed elsewhere too.
        written = self._blobs.written()
        manifests, all_read = self._manifests()
        gone = self._gone(manifests, {key: size for key, (size, _) in written.items()}, committed_step)
        for manifest in gone:
            if self._too_late(committed_s):
                return
            self._bucket.delete(manifest.key)
        if not all_read:
            return
        left = [manifest for manifest in manifests if manifest not in gone]
        for key in unreferenced({key: at_s for key, (_, at_s) in written.items()}, left, now_s=committed_s):
            if self._too_late(committed_s):
                return
            self._blobs.remove(key)

    def _gone(self, manifests: list[Manifest], sizes: Mapping[str, int], committed_step: int) -> list[Manifest]:
        """Only complete checkpoints count as kept; an incomplete one goes when it is older than all of those."""
        complete = [manifest for manifest in manifests if not missing_blobs(manifest, sizes)]
        gone = list(expired(complete, keep=self._keep, committed_step=committed_step, pinned=self._pinned))
        oldest = min((m.step for m in complete if m not in gone and m.key not in self._pinned), default=0)
        useless = [m for m in manifests if m not in complete and m.step < min(oldest, committed_step)]
        return gone + [m for m in useless if m.key not in self._pinned]

    def _manifests(self) -> tuple[list[Manifest], bool]:
        """All that can be read, and whether that is all of them: the blobs of one that can not be read are unknown, so none may go."""
        manifests: list[Manifest] = []
        listed = [stat for stat in self._bucket.list(manifest_prefix(self._run_id)) if parse_manifest_key(self._run_id, stat.key)]
        all_read = len(listed) <= MANIFESTS_MAX
        self._read = {stat: self._read[stat] for stat in listed if stat in self._read}
        for stat in listed[:MANIFESTS_MAX]:
            try:
                manifests += self._manifest(stat)
            except ValueError:
                _log.warning("manifest %s can not be read; no blobs are removed", stat.key)
                all_read = False
        return manifests, all_read

    def _manifest(self, stat: Stat) -> list[Manifest]:
        """The manifest, or none if it is gone by now; read once, as long as it is not written again."""
        if stat not in self._read:
            content = self._bucket.get(stat.key)
            if content is None:
                return []
            self._read[stat] = Manifest.model_validate_json(content.data)
        return [self._read[stat]]

    def _too_late(self, committed_s: int) -> bool:
        return self._clock() - committed_s > PRUNE_S_MAX

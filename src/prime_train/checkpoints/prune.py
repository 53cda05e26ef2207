"""Deletes what the bucket no longer needs: first old manifests, then the blobs that no manifest lists any
more.

With this order an interruption at any point leaves at most unreferenced blobs, as an interrupted upload does;
the next pruning finds them. At least one complete checkpoint, pinned ones and everything from the committed
step on are kept whatever the policy. Several processes may prune at once: see `checkpoints.retention`.

Blobs that a descendant uses are kept, although the run's own manifest of that checkpoint may be deleted. A
launch that starts a descendant writes its record first, and then checks that the manifest still exists. Here
the manifest is deleted first, and then the records are read. So either the launch finds that the manifest is
gone, or the record is found here.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Catalog, read_descendants
from prime_train.checkpoints.manifest import Manifest, unreferenced
from prime_train.checkpoints.retention import Kept, RetentionPolicy, expired
from prime_train.runs.resume_point import BLOB_GRACE_S

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pruning:
    """What will be deleted of a run: checkpoints, oldest first, and keys of blobs. `blobs_kept`: the reason
    if no blob is deleted. `sizes`: the bytes of each of these blobs; `later_bytes`: bytes of further unlisted
    blobs, all of which may be deleted from second `later_s` on; until then they could belong to an upload in
    progress.
    """

    run_id: str
    checkpoints: tuple[Kept, ...]
    blobs: tuple[str, ...]
    bytes: int
    blobs_kept: str = ""
    later_bytes: int = 0
    later_s: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False)


def plan(
    catalog: Catalog,
    policy: RetentionPolicy,
    *,
    committed_step: int,
    pinned: Collection[str] = (),
    now_s: int,
) -> Pruning:
    """Return what to delete, without side effects. If a manifest cannot be read, its blobs are unknown, so no
    blob is deleted.
    """
    gone = expired(
        catalog.kept(policy), policy, committed_step=committed_step, pinned={*pinned, *catalog.pinned}
    )
    keys = {kept.key for kept in gone}
    left: list[Manifest] = [
        *(manifest for manifest in catalog.manifests if manifest.key not in keys),
        *catalog.descendants,
    ]
    if catalog.unread:
        return Pruning(
            catalog.run_id, gone, (), 0, f"manifest {catalog.unread[0]} cannot be read; no blobs are removed"
        )
    written_s = {key: blob.written_s for key, blob in catalog.blobs.items()}
    blobs = unreferenced(written_s, left, now_s=now_s)
    later = set(unreferenced(written_s, left, now_s=now_s, grace_s=-now_s)) - set(blobs)
    return Pruning(
        catalog.run_id,
        gone,
        blobs,
        sum(catalog.blobs[key].size for key in blobs),
        sizes={key: catalog.blobs[key].size for key in blobs},
        later_bytes=sum(catalog.blobs[key].size for key in later),
        later_s=max((written_s[key] + BLOB_GRACE_S for key in later), default=0),
    )


def carry_out(
    bucket: Bucket,
    pruning: Pruning,
    *,
    remove: Callable[[str], object],
    too_late: Callable[[], bool] = lambda: False,
    told: Callable[[Kept], None] = lambda kept: None,
) -> None:
    """Delete what is planned; `remove` deletes one blob, and `told` is called with each checkpoint that was
    deleted. Stops early once `too_late` returns True. Raises the bucket's errors; whatever is left is deleted
    by the next pruning.
    """
    if pruning.blobs_kept:
        _log.warning("%s", pruning.blobs_kept)
    for kept in pruning.checkpoints:
        if too_late():
            return
        bucket.delete(kept.key)
        told(kept)
    for key in _unused_by_descendants(bucket, pruning):
        if too_late():
            return
        remove(key)


def _unused_by_descendants(bucket: Bucket, pruning: Pruning) -> tuple[str, ...]:
    """Return the blobs to delete, without those that a descendant uses by now; none if the record of a
    descendant cannot be read.
    """
    if not pruning.blobs:
        return ()
    descendants, unread = read_descendants(bucket, pruning.run_id)
    if unread:
        _log.warning("%s cannot be read; no blobs are removed", unread[0])
        return ()
    used = {key for manifest in descendants for key in manifest.blobs()}
    return tuple(key for key in pruning.blobs if key not in used)

"""What the bucket may forget: old manifests first, then the blobs that no manifest lists any more.

In this order a cut anywhere leaves at most blobs that nobody needs, such as those of an upload that died; the next pruning finds them. At
least one complete checkpoint, what is pinned and everything from the committed step on stay, whatever else is asked for. Several may prune
at once: see `core.retention`.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from prime_train.checkpoints.catalog import Catalog
from prime_train.core.manifest import Manifest, unreferenced
from prime_train.core.retention import Kept, Policy, expired
from prime_train.ports import Bucket

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pruning:
    """What goes: checkpoints, oldest first, and keys of blobs. `blobs_kept`: why no blob goes, if so."""

    checkpoints: tuple[Kept, ...]
    blobs: tuple[str, ...]
    bytes: int
    blobs_kept: str = ""


def plan(catalog: Catalog, policy: Policy, *, committed_step: int, pinned: Collection[str] = (), now_s: int) -> Pruning:
    """Pure. The blobs of a manifest that can not be read are not known, so then none goes."""
    gone = expired(catalog.kept(policy), policy, committed_step=committed_step, pinned={*pinned, *catalog.pinned})
    keys = {kept.key for kept in gone}
    left: list[Manifest] = [manifest for manifest in catalog.manifests if manifest.key not in keys]
    if catalog.unread:
        return Pruning(gone, (), 0, f"manifest {catalog.unread[0]} can not be read; no blobs are removed")
    blobs = unreferenced({key: blob.written_s for key, blob in catalog.blobs.items()}, left, now_s=now_s)
    return Pruning(gone, blobs, sum(catalog.blobs[key].size for key in blobs))


def carry_out(bucket: Bucket, pruning: Pruning, *, remove: Callable[[str], None], too_late: Callable[[], bool] = lambda: False) -> None:
    """Deletes what is planned; `remove` deletes one blob. Raises what the bucket raises; whatever was left over goes the next time."""
    if pruning.blobs_kept:
        _log.warning("%s", pruning.blobs_kept)
    for kept in pruning.checkpoints:
        if too_late():
            return
        bucket.delete(kept.key)
    for key in pruning.blobs:
        if too_late():
            return
        remove(key)

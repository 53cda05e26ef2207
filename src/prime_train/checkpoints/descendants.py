"""The records of descendants: who still uses content of a run, and which records are no longer needed.

A record is written before its descendant exists, so a young one always counts. Later it is needed as long as
the descendant has the manifest that refers to the content; the descendant's own retention deletes that
manifest like any other.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

from prime_train.buckets.keys import (
    descendant_key,
    descendants_prefix,
    manifest_key,
    parse_descendant_key,
    spec_key,
)
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.manifest import Manifest, descendant_manifest
from prime_train.runs.resume_point import BLOB_GRACE_S
from prime_train.runs.run import Lineage, Run
from prime_train.runs.stored_forms import FIELD, FORM

ABANDONED_S = 7 * 86_400
"""Seconds after which a descendant that no store and no object shows to have been launched counts as the
remains of an interrupted launch.
"""


def spec_json(run: Run) -> bytes:
    """Return the object in the bucket that says with which config the run was launched, and from which
    checkpoint. That of a descendant is written with its record, so that no other control plane takes a run
    that waits for a machine for the remains of a launch.
    """
    lineage = f'"lineage": {json.dumps(asdict(run.lineage))}, ' if run.lineage is not None else ""
    return (
        f'{{"{FIELD}": {FORM}, "commit": {json.dumps(run.commit)}, '
        f'{lineage}"spec": '
        f"{run.spec.model_dump_json(indent=2)}}}"
    ).encode()


def used_by_descendants(bucket: Bucket, run_id: str) -> tuple[list[Manifest], bool]:
    """Return the manifests of the descendants that use content of the run, and whether each record could be
    read. Read it after the run's own manifests: `checkpoints.prune` says why.
    """
    keys = [
        stat.key for stat in bucket.list(descendants_prefix(run_id)) if parse_descendant_key(run_id, stat.key)
    ]
    contents = {key: content for key in keys if (content := bucket.get(key)) is not None}
    manifests = [descendant_manifest(run_id, key, content.data) for key, content in contents.items()]
    return [manifest for manifest in manifests if manifest is not None], None not in manifests


def unneeded_records(
    bucket: Bucket, run_id: str, *, is_stored: Callable[[str], bool], now_s: int
) -> Iterator[str]:
    """Yield the keys of the records of descendants of this run that need its content no longer. `is_stored`:
    whether the store has a run with this id.
    """
    for stat in list(bucket.list(descendants_prefix(run_id))):
        place = parse_descendant_key(run_id, stat.key)
        if place is None or stat.written_s + BLOB_GRACE_S > now_s:
            continue
        descendant, step = place
        is_dropped = bucket.stat(manifest_key(descendant, step, 0)) is None
        is_old = stat.written_s + ABANDONED_S <= now_s
        if is_dropped or (is_old and not is_stored(descendant) and bucket.stat(spec_key(descendant)) is None):
            yield stat.key


def remove_record(bucket: Bucket, run_id: str, key: str) -> None:
    """Delete a record of a descendant of `run_id`, and first the descendant's manifest, so that it never
    refers to content that is not kept.
    """
    place = parse_descendant_key(run_id, key)
    if place is not None:
        bucket.delete(manifest_key(*place, 0))
        bucket.delete(key)


def release(bucket: Bucket, run_id: str, lineage: Lineage) -> bool:
    """Delete the record of this descendant if its retention has deleted the manifest that refers to the
    content. Return whether it did.
    """
    step = lineage.source.step
    key = descendant_key(lineage.blobs_of, run_id, step)
    if bucket.stat(manifest_key(run_id, step, 0)) is not None or bucket.stat(key) is None:
        return False
    bucket.delete(key)
    return True

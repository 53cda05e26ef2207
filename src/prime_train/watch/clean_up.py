"""Completes the clean-up of an ended run: deletes unlisted chunks that were too young while its agent still
ran.

Chunks are deleted before the clean-up is saved, so that after a crash the next watcher deletes the rest.
Nothing uploads for a run that is over and whose machines are gone; chunks younger than the grace period are
kept all the same.

Content that descendants use is kept. A descendant that has ended releases it if its retention no longer keeps
the checkpoint that it was started from, and the run that holds the content is then cleaned up again.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from prime_train.alerts.port import Summarizing
from prime_train.buckets.keys import blob_prefix, manifest_prefix
from prime_train.checkpoints.descendants import release, remove_record, unneeded_records, used_by_descendants
from prime_train.checkpoints.manifest import unreferenced
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.errors import ExternalError
from prime_train.runs import change as c
from prime_train.runs.deletions import NOTHING, in_words, summary
from prime_train.runs.run import Run
from prime_train.runs.store import RunRecord
from prime_train.runs.unreadable import UnreadableRecord
from prime_train.tracker.port import NoTracker
from prime_train.watch.context import Context
from prime_train.watch.means import marks_elsewhere
from prime_train.watch.unreadable_runs import is_stored

REMOVED_MAX = 300
"""Maximum number of chunks deleted at a time, because other runs wait and a Lambda's time is limited."""
AGAIN_S = 15
RETRY_S = 900
TRIED_S_MAX = 7 * 86_400
"""Seconds after the end of a run until clean-up stops retrying against a bucket that refuses deletions."""


def clean_up(context: Context, record: RunRecord, now_s: int) -> bool:
    """Delete some chunks, and save when to continue. Return False if the save failed."""
    run = record.run
    gone = gone_bytes = 0
    try:
        if run.lineage is not None and release(context.bucket, run.run_id, run.lineage):
            # Schedule another clean-up of an ended run. If another writer is first, or the store does not
            # have the run, `prune` deletes what is left.
            with suppress(UnreadableRecord):  # it is left as it is
                _wake_ended(context, context.store.load(run.lineage.blobs_of), now_s)
        for key in unneeded_records(
            context.bucket, run.run_id, is_stored=partial(is_stored, context.store), now_s=now_s
        ):
            remove_record(context.bucket, run.run_id, key)
        doomed, sizes = _doomed(context, run.run_id, now_s)
        for key in doomed[:REMOVED_MAX]:
            context.bucket.delete(key)
            gone += 1
            gone_bytes += sizes[key]
    except ExternalError as error:
        context.watched(run.run_id, "CleanUpFailed", f"{error}; retried later")
        return context.store.save(
            c.cleaned_up(run, gone, now_s, again_s=_retry_s(run, now_s), gone_bytes=gone_bytes)
        )
    if len(doomed) > gone:
        return context.store.save(
            c.cleaned_up(run, gone, now_s, again_s=now_s + AGAIN_S, gone_bytes=gone_bytes)
        )
    change = c.cleaned_up(run, gone, now_s, again_s=None, gone_bytes=gone_bytes)
    return context.store.save(
        replace(change, run=tracked(context, change.run, now_s, again_s=_retry_s(run, now_s)))
    )


def _retry_s(run: Run, now_s: int) -> int | None:
    """Return when to try again what could not be done now; None if it has been tried for long enough."""
    return None if run.ended_s is not None and now_s >= run.ended_s + TRIED_S_MAX else now_s + RETRY_S


def _wake_ended(context: Context, record: RunRecord | None, now_s: int) -> None:
    if record is not None and record.run.is_at_rest and record.run.cleanup_s is None:
        context.store.save(c.cleaned_up(record.run, 0, now_s, again_s=now_s))


def _doomed(context: Context, run_id: str, now_s: int) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the chunks of no checkpoint, of this run or a descendant, and the bytes of all chunks. Blobs are
    listed before the manifests. If a manifest cannot be read, its chunks are unknown, and none is returned.
    """
    stats = list(context.bucket.list(blob_prefix(run_id)))
    blobs, sizes = {stat.key: stat.written_s for stat in stats}, {stat.key: stat.size for stat in stats}
    manifests = read_manifests(context.bucket, run_id)
    if len(manifests) != sum(1 for _ in context.bucket.list(manifest_prefix(run_id))):
        context.watched(run_id, "CleanUpLeft", "a manifest in the bucket cannot be read; its chunks are kept")
        return (), sizes
    descendants, all_read = used_by_descendants(context.bucket, run_id)
    if not all_read:
        context.watched(
            run_id,
            "CleanUpLeft",
            "the record of a descendant in the bucket cannot be read; all chunks are kept",
        )
        return (), sizes
    return unreferenced(blobs, [*manifests, *descendants], now_s=now_s), sizes


# Shows in the tracker what was deleted of a run, once the run is over.
#
# A run that trains writes its summary itself, as a whole, so that what anybody else writes there would be
# lost with its next report.
def tracked(context: Context, run: Run, now_s: int, *, again_s: int | None) -> Run:
    """Return the run that has been cleaned up, with what its tracker has been told; if it could not be told
    now, with the second `again_s` of the next try.
    """
    if run.spec.wandb is None or run.deleted in (NOTHING, run.deleted_tracked):
        return run
    if isinstance(context.tracker, Summarizing):
        words = in_words(run.deleted, run.spec.checkpoints)
        if context.tracker.summarize(run, summary(run.deleted, words)):
            return replace(run, deleted_tracked=run.deleted)
    elif not (isinstance(context.tracker, NoTracker) and marks_elsewhere(context, now_s)):
        return run
    return replace(run, cleanup_s=again_s, next_check_s=again_s)

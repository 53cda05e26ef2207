"""Reads the newest checkpoints of runs that are alive back from the bucket, a little in each sweep, so that
damage is known while the machine that can mend it still runs.

A sweep reads at most `SWEEP_BYTES_MAX`, and of each run one checkpoint after the other, from where the last
sweep stopped, up to the first damage. A machine wrote the manifest, so neither the sizes nor the number of
chunks in it bound the time that this takes. Most clouds charge for reads from outside, so content is read
only where that is free or wanted; the manifest is read in any case.
"""

import time
from collections.abc import Iterable

from prime_train.checkpoints.manifest import Chunk, Manifest
from prime_train.checkpoints.read_manifests import read_manifest
from prime_train.errors import ExternalError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.change import change
from prime_train.runs.decision import Notify
from prime_train.runs.run import ACTIVE_STATES, Severity
from prime_train.runs.store import RunRecord
from prime_train.watch.context import Context, Failures, ReadBack

EVERY_S = 60
"""Seconds between two looks at one run."""
REST_S = 3600
"""Seconds until a checkpoint that was read to its end is read again, unless a newer one replaces it."""
SWEEP_BYTES_MAX = 64 * 2**20
CALL_BYTES = 2**18
"""What a chunk counts at least, whatever size a machine has declared for it: each takes a call to the
bucket.
"""
LOOK_CHUNKS_MAX = 256
LOOK_S_MAX = 10.0
"""Longest time in seconds for one run in a sweep, from which on no further chunk is read: other runs wait for
their decisions meanwhile.
"""


def read_back(context: Context, run_ids: Iterable[str], now_s: int, failures: Failures) -> None:
    """Read a part of the newest checkpoints of these runs, and notify people once of damage, and of
    checkpoints that change after they are complete. What cannot be read now is read by a later sweep.
    """
    if context.is_guest:
        return
    left = SWEEP_BYTES_MAX
    for run_id in run_ids:
        before = context.read_back.get(run_id)
        if before is not None and now_s < before.next_s <= now_s + REST_S:
            continue
        record = failures.load(context.store, run_id)
        if record is None or record.run.state not in ACTIVE_STATES or not record.lease.committed_key:
            context.read_back.pop(run_id, None)
            continue
        with failures.collected(run_id):
            try:
                left -= _look(context, record, before, now_s, left)
            except ExternalError as error:
                context.watched(run_id, "ReadBackFailed", f"{error}; the checkpoint is read later")


def _look(context: Context, record: RunRecord, before: ReadBack | None, now_s: int, bytes_max: int) -> int:
    """Read on in the run's newest checkpoint; return the number of bytes."""
    run_id, key = record.run.run_id, record.lease.committed_key
    done = before.chunks if before is not None and before.key == key else 0
    context.read_back[run_id] = ReadBack(key, done, now_s + EVERY_S)
    manifest = read_manifest(context.bucket, key)
    if manifest is None:
        return 0  # what follows from that is decided at the next resume
    if manifest.changes_late:
        text = (
            f"files of a checkpoint up to step {manifest.step} were added or changed after it was complete, "
            "so it was uploaded again; from now on a checkpoint counts once the trainer has gone on. Write "
            "checkpoints.sentinel last, or raise checkpoints.settled_s"
        )
        _tell(
            context,
            record,
            Notify(
                AlertKind.LATE_FILES, Severity.WARNING, "a checkpoint changed after it was complete", text
            ),
            now_s,
        )
    if not context.reads_back or bytes_max <= 0:
        return 0
    places: dict[str, tuple[Chunk, str]] = {}
    for file in manifest.files:
        for chunk in file.chunks:
            places.setdefault(chunk.digest, (chunk, file.path))
    chunks = list(places.values())
    left, found, until_s = bytes_max, "", time.monotonic() + LOOK_S_MAX
    for chunk, path in chunks[done : done + LOOK_CHUNKS_MAX]:
        cost = max(chunk.stored, CALL_BYTES)
        if left < bytes_max and (cost > left or time.monotonic() > until_s):
            break
        left, done = left - cost, done + 1
        if damage := _damage(context, manifest, chunk):
            found = f"{path} {damage}"
            break
    if found:
        text = (
            f"{found} of step {manifest.step}. Its machine sends it again if it still has the content, at "
            "the latest before the run succeeds; otherwise the newest checkpoint without it is resumed from"
        )
        _tell(
            context,
            record,
            Notify(AlertKind.DAMAGED, Severity.WARNING, "a checkpoint is damaged in the bucket", text),
            now_s,
        )
    # The first damage says it all: people look at the whole checkpoint then.
    is_read = bool(found) or done >= len(chunks)
    context.read_back[run_id] = ReadBack(
        key, 0 if is_read else done, now_s + (REST_S if is_read else EVERY_S)
    )
    return bytes_max - left


def _damage(context: Context, manifest: Manifest, chunk: Chunk) -> str:
    # Not at the top: a watcher that reads nothing back need not load the codecs.
    from prime_train.checkpoints.chunks import Damaged, fetch

    try:
        fetch(context.bucket, manifest.holder, chunk)
    except Damaged as error:
        return str(error)
    return ""


def _tell(context: Context, record: RunRecord, note: Notify, now_s: int) -> None:
    """Notify people once in the life of the run. If the save is lost to another watcher, a later look repeats
    it.
    """
    now = context.store.load(record.run.run_id)
    if now is not None and now.run.state in ACTIVE_STATES and now.run.noted_s(note.kind) is None:
        context.store.save(change(now.run, now.lease, note, now_s))

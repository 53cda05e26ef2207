"""The records of runs in the bucket: written at each turn, and adopted by a store that was restored from an
older copy.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from prime_train.buckets.keys import RECORDS, blob_prefix, parse_record_key, record_key, record_prefix
from prime_train.buckets.port import Bucket, small_object
from prime_train.checkpoints.manifest import newest_complete
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.errors import ExternalError, PermanentError
from prime_train.runs import change as c
from prime_train.runs.run import ACTIVE_STATES, Lease, Run
from prime_train.runs.sealed_record import is_ahead, sealed, unsealed
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.stored_forms import NewerForm, UnknownField
from prime_train.version import __version__

Places = Iterable[tuple[int, int]]
"""Pairs of attempt and turn, which identify records."""


def write_record(bucket: Bucket, run: Run, lease: Lease, master: bytes) -> None:
    """Write the record of the run's current turn to the bucket. Raises ExternalError if that fails; a failed
    deletion of older attempts' records is ignored.
    """
    bucket.put(record_key(run.run_id, run.attempt, run.turn), sealed(run, lease, master))
    with suppress(ExternalError):
        for attempt, turn in _places(bucket, run.run_id):
            if attempt < run.attempt:
                bucket.delete(record_key(run.run_id, attempt, turn))


def catch_up(store: Store, bucket: Bucket, master: bytes, record: RunRecord, now_s: int) -> bool | None:
    """Make a store that was restored from an older copy adopt the newest record of the run. Return None if
    there is no newer record, so the store is not behind; False if another writer was first. Raises
    ExternalError if the bucket, or a newer record, cannot be read.
    """
    run_id = record.run.run_id
    found = _newest(
        bucket, master, run_id, [place for place in _places(bucket, run_id) if is_ahead(place, record.run)]
    )
    if found is None:
        return None
    run, lease = found
    return store.save(c.caught_up(record.run, record.lease, run, _with_commit(bucket, run, lease), now_s))


def catch_up_all(store: Store, bucket: Bucket, master: bytes, now_s: int) -> list[str]:
    """Apply `catch_up` to all runs in the store; return the ids of those that were behind. Needs one listing,
    so it can run at every start of a control plane, before it listens, because an agent whose attempt the
    store does not have would be answered `fenced`.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for stat in bucket.list(RECORDS):
        named = parse_record_key(stat.key)
        if named is not None:
            places.setdefault(named[0], []).append(named[1:])
    behind = [
        run.run_id
        for run in store.list_runs()
        if any(is_ahead(place, run) for place in places.get(run.run_id, ()))
    ]
    loaded = [record for run_id in behind if (record := store.load(run_id)) is not None]
    return [record.run.run_id for record in loaded if catch_up(store, bucket, master, record, now_s)]


def _places(bucket: Bucket, run_id: str) -> list[tuple[int, int]]:
    named = [parse_record_key(stat.key) for stat in bucket.list(record_prefix(run_id))]
    return [name[1:] for name in named if name is not None and name[0] == run_id]


def recorded_run(bucket: Bucket, master: bytes, run_id: str) -> Run | None:
    """Return a run as its newest record has it; None if there is no record with this control plane's seal.
    Raises ExternalError if the bucket, or the record, cannot be read.
    """
    found = _newest(bucket, master, run_id, _places(bucket, run_id))
    return found[0] if found is not None else None


def _newest(bucket: Bucket, master: bytes, run_id: str, places: Places) -> tuple[Run, Lease] | None:
    """Return the newest of these records, or None. Records without this control plane's seal are skipped."""
    for attempt, turn in sorted(places, reverse=True):
        key = record_key(run_id, attempt, turn)
        content = small_object(bucket, key)
        try:
            found = unsealed(content.data, master) if content is not None else None
        except ValueError as error:
            raise PermanentError(
                f"{key} is newer than the store and cannot be read: {_reason(error)}; it may have been "
                "written by a newer version of "
                f"prime-train than this one ({__version__}): use that one"
            ) from error
        if found is not None and (found[0].run_id, found[0].attempt, found[0].turn) == (
            run_id,
            attempt,
            turn,
        ):
            return found
    return None


def _reason(error: ValueError) -> str:
    """Return what is wrong, without the values."""
    return str(error) if isinstance(error, NewerForm | UnknownField) else type(error).__name__


def _with_commit(bucket: Bucket, run: Run, lease: Lease) -> Lease:
    """Return the lease with its attempt's newest complete checkpoint as committed, because the record lacks
    later commits.
    """
    if run.state not in ACTIVE_STATES:
        return lease
    manifests = [
        m for m in read_manifests(bucket, run.run_id, attempt=run.attempt) if m.identity == lease.identity
    ]
    sizes = {stat.key: stat.size for stat in bucket.list(blob_prefix(run.run_id))} if manifests else {}
    newest = newest_complete(manifests, sizes)
    if newest is None or newest.step <= lease.committed_step:
        return lease
    return replace(lease, committed_step=newest.step, committed_key=newest.key)
